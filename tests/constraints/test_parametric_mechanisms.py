"""Mechanisms of models with parameters: what is compiled once equals what is compiled for each set of numbers."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.rows.wrench import constraint_wrench
from delassus.model.generators import chain
from mechanisms import state

ARM = chain(6)
NAMES = ("gravity", "inertia", "placement", "frame:tip", "armature")


def level(kinematics, q):
    return kinematics.position("tip")[2:] - 0.1


def straight(kinematics, q, v):
    return kinematics.velocity("tip")[:1]


HOLDING = {
    "point": [dl.Point("tip")],
    "world": [dl.Weld("tip", "world", rows=("z", "rx"), axes="world", position_gain=9.0, velocity_gain=6.0)],
    "rod": [dl.Distance("tip", "world", placement2=dl.Placement.of(p=(1.0, 2.0, 3.0)), length=1.0)],
    "function": [dl.Implicit(level, rows=1, position_gain=9.0, velocity_gain=6.0)],
    "velocities": [dl.Nonholonomic(straight, rows=1)],
    "joint": [dl.JointLock(ARM.joints[2].name)],
}


def others(parametric, seed=0):
    """Other numbers than those of the model, of bodies that can exist."""
    rng = np.random.default_rng(seed)
    model = parametric.model
    inertias = [dl.Inertia.of(m, rng.normal(size=3) / 5, np.diag([1.0, 1.2, 1.4]) * m) for m in rng.uniform(1, 3, 6)]
    turned = [dl.Placement.from_xyz_rpy(rng.normal(size=3) / 3, rng.normal(size=3)) for _ in range(7)]
    joints = tuple(
        replace(joint, inertia=body, placement=place, armature=tuple(rng.uniform(0.1, 0.5, joint.kind.nv)))
        for joint, body, place in zip(model.joints, inertias, turned, strict=False)
    )
    frames = tuple(replace(frame, placement=turned[6]) if frame.name == "tip" else frame for frame in model.frame_list)
    other = replace(model, gravity=(1.0, -2.0, -9.0), joints=joints, frame_list=frames)
    return other.parametric(*parametric.names).parameters()


def both(kernel, constraints, arrays, seed=0, **options):
    """Results of one program with parameters, and of the one that is made for these numbers."""
    parametric = ARM.parametric(*NAMES)
    held, p = dl.Mechanism(parametric, constraints), others(parametric, seed)
    found = evaluate(kernel.program(held, **options), *arrays, p)
    plain = dl.Mechanism(parametric.with_parameters(p), constraints)
    if "proximal" in kernel.signature.optional:  # scales are those of the model's own numbers: ε is the same in both
        options["proximal"] = options.get("proximal", tuple(1e-6 * x for x in row_mobilities(held)))
        found = evaluate(kernel.program(held, **options), *arrays, p)
    return found, evaluate(kernel.program(plain, **options), *arrays)


def agree(found, expected, tolerance=1e-12):
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1.0, np.abs(y).max(initial=0.0)))


@pytest.mark.parametrize("constraints", HOLDING.values(), ids=HOLDING)
@pytest.mark.parametrize("kernel", [dl.prox_pv, dl.prox_ltl, dl.constraint_jacobian, dl.constraint_error])
def test_rows_and_solutions_are_those_of_the_recompiled_mechanism(kernel, constraints):
    q, v, tau = state(ARM, seed=2)
    arrays = (q, v, tau)[: len(kernel.arguments)]
    agree(*both(kernel, constraints, arrays))


@pytest.mark.parametrize("kernel", [dl.caba, dl.prox_ltls, dl.pv_soft], ids=lambda k: k.name)
def test_methods_with_penalties_agree_to_what_penalties_leave(kernel):
    agree(*both(kernel, HOLDING["point"], state(ARM, seed=2), proximal=1e-3), tolerance=1e-11)


@pytest.mark.parametrize(
    "kernel", [dl.delassus_matrix, dl.operational_inertia, dl.constraint_bias, dl.three_steps, dl.pv_early]
)
def test_other_kernels_take_parameters(kernel):
    agree(*both(kernel, HOLDING["point"], state(ARM, seed=3)[: len(kernel.arguments)]))


def test_derivatives_take_parameters():
    agree(*both(dl.constrained_derivatives, HOLDING["point"], state(ARM, seed=3), proximal=1e-2), tolerance=1e-10)


def test_impacts_and_projections_take_parameters():
    q, v, _ = state(ARM, seed=4)
    agree(*both(dl.impact, HOLDING["world"], (q, v)), tolerance=1e-11)
    agree(*both(dl.project, HOLDING["velocities"], (q, v)), tolerance=1e-11)


def test_forces_in_other_axes_take_parameters():
    q, _, _ = state(ARM, seed=4)
    agree(*both(constraint_wrench, HOLDING["point"], (q, np.array([1.0, 2.0, 3.0])), constraint="tip"))


FOUR_BAR = dl.load("four_bar")
LENGTHS = FOUR_BAR.parametric("inertia", "frame:coupler_end")


def lengths(count):
    """Four-bars whose couplers end elsewhere, by up to a centimeter, and whose crank is heavier."""
    rng = np.random.default_rng(0)
    p = np.tile(LENGTHS.parameters(), (count, 1))
    p[:, LENGTHS.slices["frame:coupler_end"].start] += rng.uniform(-0.01, 0.01, count)
    p[:, :10] *= rng.uniform(1.0, 2.0, (count, 1))
    return p


def test_every_item_of_a_batch_has_its_own_loop():
    """Assembled, projected, solved and struck, with one set of parameters per item."""
    linkage, p = dl.Mechanism(LENGTHS), lengths(4)
    closed = dl.assemble(linkage, np.tile(FOUR_BAR.posture("home"), (4, 1)), locked="crank*", parameters=p)
    assert (closed.status == dl.Status.CONVERGED).all()
    q, v = dl.project(linkage, closed.q, np.ones((4, 3)), parameters=p)
    found = dl.constrained_dynamics(linkage, q, v, np.zeros((4, 3)), parameters=p)
    struck = dl.impact(linkage, q, np.ones((4, 3)), parameters=p)
    assert found.is_optimal().all()
    for k in range(4):
        own = dl.Mechanism(LENGTHS.with_parameters(p[k]))
        assert np.abs(dl.constraint_error(own, q[k])).max() < 1e-12
        a, force = dl.kkt(own, q[k], v[k], np.zeros(3))
        np.testing.assert_allclose(found.acceleration[k], a, rtol=0, atol=1e-9 * np.abs(a).max())
        np.testing.assert_allclose(found.force[k], force, rtol=0, atol=1e-9 * np.abs(force).max())
        np.testing.assert_allclose(struck.v[k], dl.impact(own, q[k], np.ones(3)).v, rtol=0, atol=1e-10)
    np.testing.assert_allclose(dl.kkt(linkage, q, v, np.zeros((4, 3)), parameters=p)[0], found.acceleration, rtol=1e-8)
    by_svd = dl.project(linkage, q + 1e-6, v, method="svd", parameters=p)
    assert np.abs(dl.constraint_error(linkage, by_svd.q, parameters=p)).max() < 1e-10


def test_programs_of_the_solvers_agree():
    q, v, tau, p = FOUR_BAR.posture("home"), np.ones(3), np.ones(3), lengths(2)[1]
    linkage, own = dl.Mechanism(LENGTHS), dl.Mechanism(LENGTHS.with_parameters(p))
    for kernel, arrays, options in (
        (dl.constrained_dynamics, (q, v, tau), {"method": "prox_pv"}),
        (dl.assemble, (q,), {}),
        (dl.project, (q, v), {}),
    ):
        found = evaluate(kernel.program(linkage, **options), *arrays, p)
        expected = evaluate(kernel.program(own, **options), *arrays)
        agree(found[:1], expected[:1], tolerance=1e-9)


def test_scales_are_those_of_the_models_own_numbers():
    held = dl.Mechanism(ARM.parametric("inertia", "armature"), HOLDING["point"])
    assert row_mobilities(held) == row_mobilities(dl.Mechanism(ARM, HOLDING["point"]))


def test_bodies_that_get_their_mass_at_run_time_have_scales_as_well():
    empty = replace(ARM, joints=tuple(replace(joint, inertia=dl.Inertia()) for joint in ARM.joints))
    held, (q, v, tau) = dl.Mechanism(empty.parametric("inertia"), HOLDING["point"]), state(ARM)
    p = ARM.parametric("inertia").parameters()
    found = evaluate(dl.prox_pv.program(held, iterations=8), q, v, tau, p)
    agree(found[:1], dl.kkt(dl.Mechanism(ARM, HOLDING["point"]), q, v, tau)[:1], tolerance=1e-9)


def test_kernels_of_the_robot_take_its_parameters_from_a_mechanism():
    parametric = ARM.parametric("gravity")
    held, (q, v, tau), p = dl.Mechanism(parametric, HOLDING["point"]), state(ARM), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(dl.aba(held, q, v, tau, parameters=p), dl.aba(parametric, q, v, tau, parameters=p))


@dl.kernel("(nq),(nv),(nv)->(nv)")
def level_in_a_kernel(model, q, v, tau):
    return dl.prox_pv(dl.Mechanism(model, dl.Implicit(level, rows=1)), q, v, tau)[0]


def test_functions_of_the_user_hold_the_parameters_of_a_kernels_model():
    parametric = ARM.parametric("frame:tip", "inertia")
    q, v, tau = state(ARM)
    p = others(parametric)
    found = evaluate(level_in_a_kernel.program(parametric), q, v, tau, p)[0]
    expected = level_in_a_kernel.python(parametric.with_parameters(p), q, v, tau)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_they_are_compared_and_copied_by_content():
    made = [dl.Mechanism(ARM.parametric("gravity"), HOLDING["function"]) for _ in range(2)]
    assert made[0] == made[1] and hash(made[0]) == hash(made[1])
    assert pickle.loads(pickle.dumps(made[0])) == made[0] == copy.deepcopy(made[0])
    assert replace(made[0], step=1e-3).nparameters == 3
    assert made[0] != dl.Mechanism(ARM, HOLDING["function"])
    assert repr(made[0]) == "<ParametricMechanism 'chain': nq 5, nv 5, 1 rows: level>" or "rows: level" in repr(made[0])


def test_parameters_that_are_missing_are_asked_for():
    with pytest.raises(TypeError, match="this model has 3 parameters"):
        dl.constraint_jacobian(dl.Mechanism(ARM.parametric("gravity"), HOLDING["point"]), ARM.neutral())


def test_a_mechanism_without_parameters_takes_none():
    with pytest.raises(TypeError, match="got parameters="):
        dl.impact(dl.Mechanism(ARM, HOLDING["point"]), ARM.neutral(), np.zeros(ARM.nv), parameters=np.zeros(3))


def test_rows_are_found_for_any_parameters():
    """Joints that are all in one place leave zeros in J that other numbers fill."""
    flat = replace(ARM, joints=tuple(replace(j, placement=dl.Placement.of()) for j in ARM.joints))
    parametric = flat.parametric("placement", "frame:tip")
    p = others(ARM.parametric("placement", "frame:tip"))
    q = ARM.random_configuration(np.random.default_rng(0))
    held = dl.Mechanism(parametric, HOLDING["function"])
    found = evaluate(dl.constraint_jacobian.program(held), q, p)[0]
    expected = dl.constraint_jacobian.python(dl.Mechanism(parametric.with_parameters(p), HOLDING["function"]), q)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_the_plain_function_takes_parameters_as_well():
    parametric = ARM.parametric(*NAMES)
    held, (q, v, tau), p = dl.Mechanism(parametric, HOLDING["function"]), state(ARM), others(parametric)
    found = dl.prox_pv.python(held, q, v, tau, parameters=p)
    agree(found, evaluate(dl.prox_pv.program(held), q, v, tau, p), tolerance=1e-9)


@dl.kernel("(nq),(nv)->(nv)")
def released(mechanism: dl.Mechanism, q, v):
    return dl.prox_pv(mechanism, q, v, np.zeros(mechanism.nv))[0] - dl.aba(mechanism, q, v, np.zeros(mechanism.nv))


def test_a_kernel_of_kernels_takes_the_parameters_of_a_mechanism():
    parametric = ARM.parametric("gravity", "inertia")
    held, (q, v, _), p = dl.Mechanism(parametric, HOLDING["point"]), state(ARM), others(ARM.parametric(*NAMES))
    p = p[: parametric.nparameters]
    found = evaluate(released.program(held), q, v, p)
    agree(found, [released.python(held.with_parameters(p), q, v)], tolerance=1e-9)
