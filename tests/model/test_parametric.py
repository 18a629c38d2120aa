"""Models with parameters: how they are named, packed and called, and that they equal recompiled ones."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.compiler import jacobian
from delassus.compiler.backends.interpreter import evaluate
from delassus.model.generators import random_tree
from delassus.model.joints import Free
from delassus.model.parts import Frame, Joint
from delassus.model.placement import Inertia, Placement
from refusals import refuses
from robots import file

TREE = random_tree(6, seed=1)
SOLO = dl.load(file("solo12.urdf"), root="free")
RNG = np.random.default_rng(0)
Q, V, A = RNG.normal(size=(3, 5, TREE.nv))
CALLS = {
    "rnea": (dl.rnea, (Q, V, A)),
    "aba": (dl.aba, (Q, V, A)),
    "crba": (dl.crba, (Q,)),
    "inverse_mass_matrix": (dl.inverse_mass_matrix, (Q,)),
    "kinetic_energy": (dl.kinetic_energy, (Q, V)),
    "potential_energy": (dl.potential_energy, (Q,)),
    "center_of_mass": (dl.center_of_mass, (Q,)),
    "centroidal_momentum": (dl.centroidal_momentum, (Q, V)),
}
each_call = pytest.mark.parametrize(("kernel", "arrays"), CALLS.values(), ids=CALLS)


def with_short_numbers(seed):
    """A tree whose inertias have few digits and masses that are powers of two: their parameters are not rounded.

    The digits are enough for no two numbers to be equal, and none is 0 or 1.
    """
    rng = np.random.default_rng(seed)
    joints = []
    for joint in TREE.joints:
        square = rng.integers(1, 2**20, (3, 3)) / 2**22
        com = rng.integers(1, 2**12, 3) / 2**13
        inertia = Inertia.of(2.0 ** rng.integers(1, 4), com, square + square.T + np.eye(3))
        joints.append(replace(joint, inertia=inertia, armature=(float(rng.uniform(0.1, 1.0)),)))
    return replace(TREE, joints=tuple(joints), gravity=tuple(rng.normal(size=3).tolist()))


KINDS = ("gravity", "inertia", "armature")


DERIVATIVES = {"rnea_derivatives": (dl.rnea_derivatives, (Q, V, A)), "aba_derivatives": (dl.aba_derivatives, (Q, V, A))}


@pytest.mark.parametrize("fma", [False, True], ids=["unfused", "fused"])
@pytest.mark.parametrize(("kernel", "arrays"), (CALLS | DERIVATIVES).values(), ids=CALLS | DERIVATIVES)
def test_parameters_give_the_bits_of_constants(kernel, arrays, fma):
    """Constants are multiplied and added when a kernel is traced, and what depends on parameters alone likewise."""
    parametric, constant = with_short_numbers(1).parametric(*KINDS), with_short_numbers(2)
    p = constant.parametric(*KINDS).parameters()
    found = evaluate(kernel.program(parametric), *arrays, p, fma=fma)
    for mine, expected in zip(found, evaluate(kernel.program(constant), *arrays, fma=fma), strict=True):
        np.testing.assert_array_equal(mine, expected)


@each_call
def test_parameters_give_the_numbers_of_constants(kernel, arrays):
    model = TREE.parametric(*KINDS)
    p = with_short_numbers(2).parametric(*KINDS).parameters()
    expected = kernel(model.with_parameters(p), *arrays)
    found = kernel(model, *arrays, parameters=p)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.max(np.abs(expected)))


@each_call
def test_parametric_placements_give_the_numbers_of_constants(kernel, arrays):
    model = TREE.parametric("placement")
    p = random_tree(6, seed=7).parametric("placement").parameters()
    expected = kernel(model.with_parameters(p), *arrays)
    np.testing.assert_allclose(
        kernel(model, *arrays, parameters=p), expected, rtol=0, atol=1e-12 * np.max(np.abs(expected))
    )


def test_each_item_of_a_batch_has_its_own_parameters():
    model = TREE.parametric("inertia:joint3")
    p = model.pack({"inertia:joint3": model.parameters() * np.linspace(0.5, 2.0, 5)[:, None]})
    expected = [dl.rnea(model.with_parameters(x), *state) for x, *state in zip(p, Q, V, A, strict=True)]
    np.testing.assert_allclose(dl.rnea(model, Q, V, A, parameters=p), expected, rtol=1e-13, atol=1e-13)


def test_a_ufunc_takes_parameters_last():
    model = TREE.parametric("gravity")
    found = dl.aba.specialize(model)(Q, V, A, model.parameters())
    np.testing.assert_allclose(found, dl.aba(TREE, Q, V, A), rtol=1e-12)


def test_a_bound_kernel_reads_parameters_anew():
    model, out = TREE.parametric("gravity"), np.zeros(TREE.nv)
    p = model.parameters()
    tick = dl.gravity_torques.bind(model, Q[0].copy(), p, out)
    p *= 2.0
    tick()
    np.testing.assert_allclose(out, 2.0 * dl.gravity_torques(TREE, Q[0]), rtol=1e-12)


def test_equal_parametric_models_share_a_kernel():
    assert dl.rnea.specialize(TREE.parametric("inertia")) is dl.rnea.specialize(
        random_tree(6, seed=1).parametric("inertia")
    )


def test_single_precision_takes_parameters():
    model = TREE.parametric("inertia")
    found = dl.rnea(model, Q, V, A, parameters=model.parameters(), dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, dl.rnea(TREE, Q, V, A), rtol=0, atol=1e-4 * np.abs(dl.rnea(TREE, Q, V, A)).max())


@dl.kernel("(nq),(nv)->(nv)")
def damped_fall(model, q, v):
    return dl.aba(model, q, v, -0.1 * v)


def test_a_kernel_of_kernels_takes_parameters():
    model = TREE.parametric("gravity")
    found = damped_fall(model, Q, V, parameters=model.parameters())
    np.testing.assert_allclose(found, dl.aba(TREE, Q, V, -0.1 * V), rtol=1e-12)


@dl.kernel("(nq),(nv),(nv)->(nv)")
def held_at_its_tip(model, q, v, tau):
    acceleration, _ = dl.caba(dl.Mechanism(model, (dl.Point("tip0"),)), q, v, tau)
    return acceleration


def test_a_mechanism_in_a_kernel_takes_parameters():
    model = TREE.parametric("inertia", "placement", "frame:tip0")
    found, expected = held_at_its_tip(model, Q, V, A, parameters=model.parameters()), held_at_its_tip(TREE, Q, V, A)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def one_body():
    inertia = Inertia.of(2.0, (0.1, 0.2, 0.3), np.eye(3))
    return dl.Model("body", (Joint("free", Free(), inertia=inertia),)).parametric("inertia", "placement")


def test_the_derivative_by_inertias_is_the_regressor():
    """Inverse dynamics is linear in the ten parameters of a body."""
    model = TREE.parametric("inertia")
    p = model.parameters()
    Y = jacobian(lambda p: dl.rnea(model, Q[0], V[0], A[0], parameters=p))(p)
    np.testing.assert_allclose(Y @ p, dl.rnea(TREE, Q[0], V[0], A[0]), rtol=1e-10)


def test_the_derivative_by_a_placement_that_does_not_turn_is_finite():
    model = one_body()
    q, v, a = model.model.neutral(), np.ones(6), np.ones(6)
    J = jacobian(lambda p: dl.rnea(model, q, v, a, parameters=p))(model.parameters())
    assert np.isfinite(J).all()


def test_a_body_that_gets_its_mass_at_run_time_can_be_accelerated():
    empty = replace(TREE, joints=tuple(replace(joint, inertia=Inertia()) for joint in TREE.joints))
    found = dl.aba(empty.parametric("inertia"), Q, V, A, parameters=TREE.parametric("inertia").parameters())
    np.testing.assert_allclose(found, dl.aba(TREE, Q, V, A), rtol=1e-9)


def test_a_joint_that_moves_nothing_is_refused_whatever_the_other_parameters():
    empty = replace(TREE, joints=tuple(replace(joint, inertia=Inertia()) for joint in TREE.joints))
    with refuses("singular-mass-matrix"):
        dl.aba(empty.parametric("gravity"), Q, V, A, parameters=TREE.gravity)


def test_a_frames_placement_moves_the_frame():
    model = TREE.parametric("frame:link3")
    p = model.pack({"frame:link3": (0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0)})
    moved = TREE.with_frame("moved", "link3", Placement.of(p=(0.1, 0.2, 0.3)))
    _, found = dl.frame_placement(model, Q, frame="link3", parameters=p)
    np.testing.assert_allclose(found, dl.frame_placement(moved, Q, frame="moved")[1], rtol=0, atol=1e-14)


# --- names and numbers ------------------------------------------------------------------------------------------------


def test_a_link_names_its_body():
    assert SOLO.parametric("inertia:FL_UPPER_LEG").parts[0].name == "inertia:FL_HFE"


def test_a_link_inside_a_body_is_refused_with_the_name_of_the_joint():
    with refuses("bad-parameter", "'FL_KFE'"):
        SOLO.parametric("inertia:FL_FOOT")


def test_a_link_that_is_fixed_to_the_world_has_no_parameters():
    with refuses("bad-parameter"):
        replace(TREE, frame_list=(Frame("table", -1, role="link"),)).parametric("inertia:table")


def test_a_pattern_chooses_all_that_match():
    assert [part.name for part in SOLO.parametric("armature:*_KFE").parts] == [
        f"armature:{leg}_KFE" for leg in ("FL", "FR", "HL", "HR")
    ]


def test_a_kind_alone_chooses_all():
    assert SOLO.parametric("armature").nparameters == SOLO.nv


@pytest.mark.parametrize("name", ["inertia:FL_HFF", "inertias:FL_HFE", "inertia:FL_HEF", "armature:FL_HFF"])
def test_an_unknown_name_lists_the_nearest(name):
    with refuses("unknown-parameter", name):
        SOLO.parametric(name)


def test_a_parameter_that_is_chosen_twice_is_refused():
    with refuses("duplicate-name", "'inertia:joint1'"):
        TREE.parametric("inertia:joint1", "inertia:*")


def test_a_body_has_a_mass_or_an_inertia_as_parameters():
    with refuses("conflicting-arguments", "'mass:joint1'", "'inertia:joint1'"):
        TREE.parametric("inertia:joint1", "mass")


def test_the_mass_alone_of_a_body_without_any_is_refused():
    empty = replace(TREE, joints=tuple(replace(joint, inertia=Inertia()) for joint in TREE.joints))
    with refuses("bad-parameter", "'inertia:joint0'"):
        empty.parametric("mass")


def test_no_names_are_refused():
    with refuses("missing-argument"):
        TREE.parametric()


def test_a_parametric_model_survives_pickling():
    model = TREE.parametric("inertia", "gravity")
    assert pickle.loads(pickle.dumps(model)) == model


def test_packed_arrays_broadcast_and_the_rest_is_the_models():
    model = TREE.parametric("gravity", "armature:joint2", "inertia:joint1")
    packed = model.pack({"gravity": np.ones((4, 1, 3)), "armature:joint2": np.full((5, 1), 2.0)})
    assert packed.shape == (4, 5, model.nparameters)
    np.testing.assert_array_equal(packed[3, 4], [1.0, 1.0, 1.0, 2.0, *model.parameters()[4:]])


def test_packing_an_unknown_name_lists_the_nearest():
    with refuses("unknown-parameter", "gravity"):
        TREE.parametric("gravity").pack({"gravitiy": np.ones(3)})


def test_packing_a_wrong_size_is_refused():
    with refuses("wrong-shape", "(9,)", "10"):
        TREE.parametric("inertia:joint0").pack({"inertia:joint0": np.ones(9)})


def test_numbers_make_a_model_of_constants():
    other = random_tree(6, seed=2)
    made = TREE.parametric("inertia").with_parameters(other.parametric("inertia").parameters())
    for mine, theirs in zip(made.joints, other.joints, strict=True):
        np.testing.assert_allclose(mine.inertia.rotational, theirs.inertia.rotational, rtol=0, atol=1e-14)


def test_default_parameters_make_the_model_again():
    model = TREE.parametric("gravity", "placement", "frame")
    made = model.with_parameters(model.parameters())
    for mine, theirs in zip(made.joints, TREE.joints, strict=True):
        np.testing.assert_allclose(mine.placement.R, theirs.placement.R, rtol=0, atol=1e-15)


# --- calls that cannot be ---------------------------------------------------------------------------------------------


def test_a_call_without_parameters_says_how_many_there_are():
    with pytest.raises(TypeError, match=r"this model has 3 parameters: pass an array \(…, 3\)"):
        dl.rnea(TREE.parametric("gravity"), Q, V, A)


def test_parameters_for_a_model_without_any_are_refused():
    with pytest.raises(TypeError, match="got parameters=, but this Model"):
        dl.rnea(TREE, Q, V, A, parameters=np.zeros(3))


def test_parameters_of_the_wrong_size_are_refused():
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        dl.rnea(TREE.parametric("gravity"), Q, V, A, parameters=np.zeros(4))


def test_parameters_is_no_name_for_an_option():
    with refuses("bad-signature", "'parameters'"):
        dl.kernel("(n)->(n)")(_with_option)


def _with_option(model, x, *, parameters=1.0):
    return x
