"""Derivatives of constrained dynamics against differences of the iterates and of the dense answer, and Pinocchio's.

Differences of order eight are taken of what the derivatives belong to, all points in one batch of the interpreter:
`prox_ltl` with the same iterations, ε so large that iterates differ by far more than rounding, or `kkt`, which has no
iterations. A relative error in the infinity norm of 1e-6 is allowed there, 1e-8 against Pinocchio.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from contacts_in_pinocchio import mechanism_of, pinocchio
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.solvers.kkt import DenseSystem, dense_system, solve_dense
from delassus.constraints.mechanism.rows import compliance_of
from delassus.model.bundled.linkages import four_bar
from delassus.model.generators import balanced_tree, random_tree
from delassus.model.joints import Free, Helical, Planar, Prismatic, Spherical, Universal
from delassus.model.parts import Mimic
from differences import STEP, jacobian_of_batch
from how_many import examples
from in_pinocchio import rigid_contacts
from mechanisms import CORNERS, relative, state
from refusals import refuses


@cache
def tree():
    """A free base that carries two branches, each with two links, by joints of many kinds."""
    model = balanced_tree(7, seed=4)
    kinds = [Free(), Spherical(), None, Helical(pitch=0.2), Prismatic(), Universal(), Planar()]
    joints = [
        joint if kind is None else replace(joint, kind=kind) for joint, kind in zip(model.joints, kinds, strict=True)
    ]
    return replace(model, joints=tuple(joints))


# --- differences ------------------------------------------------------------------------------------------------------


def columns(f, model, q, v, tau, step=STEP):
    """Derivatives of accelerations by q, v and tau, then those of forces; f gives both, for a batch."""
    n = model.nv

    def displaced(x):
        return np.concatenate(f(dl.integrate(model, q, x[:, :n]), v + x[:, n : 2 * n], tau + x[:, 2 * n :]), axis=-1)

    slopes = np.split(jacobian_of_batch(displaced, 3 * n, step), 3, axis=1)
    return [slope[:n] for slope in slopes] + [slope[n:] for slope in slopes]


def of_iterates(mechanism, q, v, tau, *, step=STEP, given=(), **options):
    program = dl.prox_ltl.program(mechanism, inputs=[name for name, _ in given], **options)
    others = [value for _, value in given]
    return columns(lambda *x: evaluate(program, *x, *others, fma=False), mechanism.model, q, v, tau, step)


def of_solution(mechanism, q, v, tau, *, step=STEP):
    program, C = dense_system.program(mechanism), compliance_of(mechanism)

    def solved(*x):
        return solve_dense(DenseSystem(*evaluate(program, *x, fma=False), C))

    return columns(solved, mechanism.model, q, v, tau, step)


def check(found, expected, limit=1e-6):
    for ours, theirs in zip(found, expected, strict=True):
        assert relative(ours, theirs) < limit


def enough(mechanism, q, v, tau):
    """Options with which iterations end at the solution: each one multiplies errors by 0.01 or less, to 1e-10."""
    M, _, J, _ = dense_system.python(mechanism, q, v, tau)
    s = np.linalg.eigvalsh(J @ np.linalg.solve(M, J.T) + np.diag(compliance_of(mechanism)))
    return {"iterations": 5, "proximal": 0.01 * float(np.min(s[s > 1e-10 * np.max(s)]))}


FEW = {"iterations": 3, "proximal": 0.3}  # [1/kg] so much that iterations are far from removing it


def check_both(mechanism, q, v, tau, *, step=STEP, converged=False):
    """Exact for few iterations of a large ε, and, with enough iterations, what the dense answer has."""
    found = dl.constrained_derivatives.python(mechanism, q, v, tau, **FEW)
    check(found, of_iterates(mechanism, q, v, tau, step=step, **FEW))
    options = enough(mechanism, q, v, tau)
    found = dl.constrained_derivatives.python(mechanism, q, v, tau, converged=converged, **options)
    check(found, of_solution(mechanism, q, v, tau, step=step))


# --- each constraint --------------------------------------------------------------------------------------------------

HERE = dl.Placement.from_xyz_rpy((0.1, -0.2, 0.15), (0.4, 0.2, -0.3))
THERE = dl.Placement.from_xyz_rpy((-0.3, 0.2, 0.1), (-0.2, 0.5, 0.3))
GAINS = {"position_gain": 30.0, "velocity_gain": 4.0}


def circling(t):
    return np.stack([np.cos(2.0 * t), np.sin(2.0 * t), 0.1 * t])


def turning(t):
    c, s = np.cos(t), np.sin(t)
    return dnp.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), circling(t)


CONSTRAINTS = {
    "point": lambda: dl.Point("link3", placement=HERE),
    "point-pulled": lambda: dl.Point("link3", placement=HERE, position=(0.1, 0.2, 0.3), **GAINS),
    "point-yielding": lambda: dl.Point("link3", rows="xz", compliance=(0.2, 0.4), velocity_gain=3.0),
    "points-tied": lambda: dl.Point("link3", "link6", placement=HERE, placement2=THERE, **GAINS),
    "point-on-its-carrier": lambda: dl.Point("link3", "link0", placement=HERE, compliance=0.1, **GAINS),
    "weld": lambda: dl.Weld("link3", placement=HERE),
    "weld-pulled": lambda: dl.Weld("link3", placement=HERE, target=THERE, **GAINS),
    "weld-yielding": lambda: dl.Weld("link3", rows=("x", "rz"), acceleration=1.0, compliance=0.3),
    "welds-tied": lambda: dl.Weld("link3", "link6", placement=HERE, placement2=THERE, compliance=0.1, **GAINS),
    "weld-on-its-carrier": lambda: dl.Weld("link4", "link0", rows="xyz", **GAINS),
    "hinge": lambda: dl.Hinge("link4", "link5", axis="y", placement=HERE, placement2=THERE, compliance=0.1, **GAINS),
    "rod": lambda: dl.Distance("link3", "link6", length=0.5, placement=HERE, placement2=THERE, **GAINS),
    "rod-on-the-world": lambda: dl.Distance("link3", length=0.5, placement2=THERE, **GAINS),
    "coupling": lambda: dl.Coupling("joint3", "joint4", coefficients=(0.1, 1.0, 0.5, -0.2), compliance=0.1, **GAINS),
    "held-joint": lambda: dl.JointLock("joint5", position=(0.3, -0.1), **GAINS),
    "function": lambda: dl.Implicit(
        lambda at, q: np.stack([at.position("link3") @ at.rotation("link6")[:, 1], q[-1] * at.position("link4")[2]]),
        rows=2,
        **GAINS,
    ),
}


REPEATED = ("point", "point-yielding", "weld", "weld-yielding", "rod-on-the-world")
"""Constraints with nothing that others of their kind lack, such as gains, compliance or a second frame."""


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow) if x in REPEATED else x for x in CONSTRAINTS])
def test_derivatives_of_each_constraint_are_exact(name):
    mechanism = dl.Mechanism(tree(), CONSTRAINTS[name]())
    check_both(mechanism, *state(mechanism.model, 3), converged=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dl.Point("link3", position=circling, **GAINS),
        lambda: dl.Weld("link3", target=turning, **GAINS),
        lambda: dl.Implicit(lambda at, q, t: at.position("link3")[:2] - circling(t)[:2], rows=2, name="at", **GAINS),
    ],
    ids=["point", "weld", "function"],
)
def test_references_that_move_are_where_they_are_at_the_time(make):
    mechanism = dl.Mechanism(tree(), make())
    x = state(mechanism.model, 3)
    found = dl.constrained_derivatives.python(mechanism, *x, time=0.7, **FEW)
    check(found, of_iterates(mechanism, *x, given=[("time", 0.7)], **FEW))


def test_a_single_iteration_has_derivatives():
    mechanism = dl.Mechanism(tree(), CONSTRAINTS["points-tied"]())
    x, options = state(mechanism.model, 3), {"iterations": 1, "proximal": 0.3}
    found = dl.constrained_derivatives.python(mechanism, *x, **options)
    check(found, of_iterates(mechanism, *x, **options))


def test_a_weld_that_is_where_it_should_be_has_derivatives():
    """There, the logarithm of the error is that of the identity."""
    model = tree()
    q, v, tau = state(model, 5)
    here = dl.Placement.of(*dl.frame_placement.python(model, q, frame="link3"))
    mechanism = dl.Mechanism(model, dl.Weld("link3", target=here, **GAINS))
    check_both(mechanism, q, v, tau)


def test_joints_that_mimic_others_move_with_them():
    model = random_tree(5, seed=6)
    joints = list(model.joints)
    joints[3] = replace(joints[3], mimic=Mimic(1, ratio=-1.5, offset=0.2))
    model = replace(model, joints=tuple(joints))
    mechanism = dl.Mechanism(model, [dl.Point("link4", rows="x"), dl.Distance("link3", "link2", length=0.5)])
    check_both(mechanism, *state(model, 1))


# --- redundant rows and loops -----------------------------------------------------------------------------------------


def test_redundant_points_have_the_derivatives_of_the_smallest_forces():
    point = dl.Point("link3", placement=HERE)
    mechanism = dl.Mechanism(tree(), [point, point])
    check_both(mechanism, *state(mechanism.model, 3))


def on_corners():
    model = dl.load("humanoid")
    feet = [dl.Point(f"{side}_sole", placement=c) for side in ("left", "right") for c in CORNERS]
    return dl.Mechanism(model, feet)


def test_eight_corners_of_feet_that_stand_have_the_derivatives_of_the_smallest_forces():
    mechanism = on_corners()
    q, _, tau = state(mechanism.model, 3)
    check_both(mechanism, q, np.zeros(mechanism.nv), tau)


def test_corners_of_feet_that_turn_contradict_each_other_and_accelerations_do_not_feel_it():
    """All points of a foot that turns cannot go straight on, so forces drift; as do their derivatives."""
    mechanism = on_corners()
    x = state(mechanism.model, 3)
    found = dl.constrained_derivatives.python(mechanism, *x, converged=True, **enough(mechanism, *x))
    check(found[:3], of_solution(mechanism, *x)[:3])


def contradicting():
    """A foot that is to stand and a calf that is to be still, on a trunk that is welded: least squares that turn."""
    model = dl.load("quadruped")
    foot = model.frames("*foot")[0].name
    return dl.Mechanism(model, [dl.Point(foot), dl.Weld("trunk"), dl.Weld("front_left_calf", rows="xyz")])


def test_accelerations_have_their_derivatives_where_rows_contradict_each_other():
    mechanism = contradicting()
    x = state(mechanism.model, 3)
    found = dl.constrained_derivatives.python(mechanism, *x, converged=True, **enough(mechanism, *x))
    check(found[:3], of_solution(mechanism, *x)[:3], 1e-8)


@pytest.mark.parametrize("share", [1e-4, 1e-5, 1e-6])
def test_so_have_those_of_iterates_whose_forces_drift(share):
    mechanism = contradicting()
    x = state(mechanism.model, 3)
    found = dl.constrained_derivatives.python(mechanism, *x, proximal=np.full(mechanism.m, share))
    check(found[:3], of_solution(mechanism, *x)[:3], 1e-8)


def test_iterates_far_from_their_end_have_derivatives_of_their_own_where_rows_contradict_each_other():
    mechanism = contradicting()
    x = state(mechanism.model, 3)
    check(dl.constrained_derivatives.python(mechanism, *x, **FEW), of_iterates(mechanism, *x, **FEW))


def test_the_smallest_derivatives_of_redundant_forces_have_the_same_effect():
    point = dl.Point("link3", placement=HERE)
    once, twice = (dl.Mechanism(tree(), [point] * count) for count in (1, 2))
    x = state(tree(), 3)
    *of_a, l_q, l_v, l_tau = dl.constrained_derivatives.python(twice, *x, converged=True, **enough(twice, *x))
    *expected, f_q, f_v, f_tau = of_solution(once, *x)
    check(of_a, expected)
    check((l_q, l_v, l_tau), [np.concatenate([f, f]) / 2.0 for f in (f_q, f_v, f_tau)])


def loops(name):
    """A mechanism with its model's loops, closed; the biped stands on flat feet."""
    feet = [dl.Weld("left_sole"), dl.Weld("right_sole")] if name == "biped" else []
    mechanism = dl.Mechanism(dl.load(name), feet)
    _, v, tau = state(mechanism.model, 3)
    return mechanism, np.asarray(mechanism.model.posture("home")), v, tau


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "delta", "biped"])
def test_derivatives_of_loops_are_exact(name):
    mechanism, *x = loops(name)
    check(dl.constrained_derivatives.python(mechanism, *x, **FEW), of_iterates(mechanism, *x, **FEW))


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "delta"])
def test_converged_derivatives_of_loops_are_those_of_the_solution(name):
    mechanism, *x = loops(name)
    found = dl.constrained_derivatives.python(mechanism, *x, converged=True, **enough(mechanism, *x))
    check(found, of_solution(mechanism, *x))


def test_a_row_that_is_redundant_where_the_loop_is_closed_changes_nothing():
    """The third row of a loop in a plane: the dense answer has derivatives without it alone."""
    mechanism, *x = loops("biped")
    knees = [dl.Point(f"{side}_rod_end", f"{side}_lever", rows="xz") for side in ("left", "right")]
    needed = dl.Mechanism(mechanism.model, [*knees, *mechanism.constraints[2:]], model_constraints=False)
    found = dl.constrained_derivatives.python(mechanism, *x, converged=True, **enough(mechanism, *x))
    across, others = [1, 4], [r for r in range(mechanism.m) if r not in (1, 4)]
    check([*found[:3], *(of_force[others] for of_force in found[3:])], of_solution(needed, *x))
    assert max(np.max(np.abs(of_force[across])) for of_force in found[3:]) < 1e-9


@pytest.mark.parametrize("angle", [0.1, 0.02])
def test_derivatives_near_a_singular_pose(angle):
    """A parallelogram that is nearly flat: there, one more row is lost."""
    mechanism = dl.Mechanism(four_bar(ground=0.4, crank=0.15, coupler=0.4, rocker=0.15))
    v, tau = np.array([[0.3, -0.3, 0.3], [0.2, 0.1, -0.4]])
    x = np.array([-angle, angle, -angle]), v, tau
    check_both(mechanism, *x, step=0.01 * angle)


# --- random mechanisms ------------------------------------------------------------------------------------------------


@st.composite
def mechanisms(draw):
    """A tree of up to 7 links with up to 3 constraints of any kind, on one frame or two, redundant or not."""
    n = draw(st.integers(2, 7))
    model = random_tree(n, seed=draw(st.integers(0, 1000)))
    number = st.floats(-1.0, 1.0).map(lambda x: round(x, 3))
    constraints = []
    for _ in range(draw(st.integers(1, 3))):
        first, second = draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True))
        gain, soft = draw(st.sampled_from([0.0, 5.0])), draw(st.sampled_from([0.0, 0.2]))
        options = {"velocity_gain": gain, "acceleration": draw(number), "compliance": soft}
        placement = dl.Placement.from_xyz_rpy([draw(number) / 4 for _ in range(3)], [draw(number) for _ in range(3)])
        kind = draw(st.sampled_from([dl.Point, dl.Weld, dl.Hinge, dl.Distance, dl.Coupling, dl.JointLock]))
        if kind is dl.JointLock:
            constraints.append(kind(f"joint{first}", **options))
        elif kind is dl.Coupling:
            joints = f"joint{first}", f"joint{second}"
            constraints.append(kind(*joints, coefficients=(0.1, 1.0, draw(number)), position_gain=gain, **options))
        else:
            tied = kind in (dl.Hinge, dl.Distance) or draw(st.booleans())
            length = {"length": 1.0, "placement2": dl.Placement.of(p=(0.0, 0.0, 3.0))} if kind is dl.Distance else {}
            frame2 = f"link{second}" if tied else None
            pull = {"position_gain": gain} if tied else {}
            constraints.append(kind(f"link{first}", frame2, placement=placement, **length, **pull, **options))
    return dl.Mechanism(model, constraints)


@settings(max_examples=examples(25))
@given(mechanisms(), st.integers(0, 1000), st.integers(1, 4), st.sampled_from([1e-2, 1.0]))
def test_derivatives_of_random_mechanisms_are_exact(mechanism, seed, iterations, proximal):
    x, options = state(mechanism.model, seed), {"iterations": iterations, "proximal": proximal}
    found = dl.constrained_derivatives.python(mechanism, *x, **options)
    check(found, of_iterates(mechanism, *x, step=1e-3, **options))


# --- Pinocchio --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [("solo12.urdf", "points"), ("talos_full_v2.urdf", "welds")], ids="-".join)
def test_derivatives_are_those_of_constraint_dynamics(case):
    mechanism, theirs = mechanism_of(*case), pinocchio(case[0])
    q, v, tau = state(mechanism.model, 1)
    models, datas = rigid_contacts(mechanism, theirs)
    data = theirs.createData()
    pin.initConstraintDynamics(theirs, data, models, datas)
    prox = pin.ProximalSettings(0.0, 0.0, 1e-4, 8)
    pin.constraintDynamics(theirs, data, dl.q_to_pinocchio(mechanism.model, q), v, tau, models, datas, prox)
    pin.computeConstraintDynamicsDerivatives(theirs, data, models, datas, prox)
    expected = (data.ddq_dq, data.ddq_dv, data.ddq_dtau, data.dlambda_dq, data.dlambda_dv, data.dlambda_dtau)
    for converged in (False, True):
        options = {"iterations": 8, "proximal": 1e-4, "converged": converged}
        check(dl.constrained_derivatives.python(mechanism, q, v, tau, **options), expected, 1e-8)


# --- what changes at run time, and the edges --------------------------------------------------------------------------


def test_rows_that_are_switched_off_are_not_there():
    both = dl.Mechanism(tree(), [CONSTRAINTS["points-tied"](), CONSTRAINTS["weld-pulled"]()])
    left = dl.Mechanism(tree(), CONSTRAINTS["weld-pulled"]())
    x, mask = state(tree(), 3), np.repeat([0.0, 1.0], [3, 6])
    found = dl.constrained_derivatives.python(both, *x, mask=mask, **FEW)
    check([*found[:3], *(of_force[3:] for of_force in found[3:])], of_iterates(left, *x, **FEW))
    assert not any(np.any(of_force[:3]) for of_force in found[3:])


def test_iterations_may_start_from_forces_and_have_desired_accelerations():
    mechanism = dl.Mechanism(tree(), CONSTRAINTS["points-tied"]())
    x, force, wanted = state(tree(), 3), np.array([3.0, -2.0, 1.0]), np.array([1.0, 2.0, 3.0])
    found = dl.constrained_derivatives.python(mechanism, *x, force=force, acceleration=wanted, **FEW)
    check(found, of_iterates(mechanism, *x, given=[("force", force), ("acceleration", wanted)], **FEW))


def test_without_constraints_they_are_those_of_aba():
    mechanism = dl.Mechanism(random_tree(4, seed=1))
    x = state(mechanism.model)
    *of_a, l_q, l_v, l_tau = dl.constrained_derivatives.python(mechanism, *x)
    np.testing.assert_array_equal(of_a, dl.aba_derivatives.python(mechanism.model, *x))
    assert l_q.shape == l_v.shape == l_tau.shape == (0, mechanism.nv)


@pytest.mark.parametrize("converged", [False, True])
def test_compiled_derivatives_are_those_of_plain_numpy(converged):
    mechanism = dl.Mechanism(dl.load("quadruped"), [dl.Point(f.name) for f in dl.load("quadruped").frames("*foot")])
    x = [np.stack(part) for part in zip(*(state(mechanism.model, seed) for seed in range(5)), strict=True)]
    found = dl.constrained_derivatives(mechanism, *x, converged=converged)
    for k, one in enumerate(zip(*x, strict=True)):
        expected = dl.constrained_derivatives.python(mechanism, *one, converged=converged)
        check([part[k] for part in found], expected, 1e-9)


def test_derivatives_by_torques_are_symmetric_to_the_bit():
    mechanism = dl.Mechanism(tree(), CONSTRAINTS["points-tied"]())
    by_tau = dl.constrained_derivatives.python(mechanism, *state(tree(), 3))[2]
    np.testing.assert_array_equal(by_tau, by_tau.T)


def test_no_iterations_are_refused():
    mechanism = dl.Mechanism(tree(), CONSTRAINTS["point"]())
    with refuses("iterations-out-of-range", "0", "iterations"):
        dl.constrained_derivatives.python(mechanism, *state(tree()), iterations=0)
