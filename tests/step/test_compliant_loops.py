"""The compliant scheme on closed loops: rows that repeat each other, singular poses, and a minute of motion."""

import math
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.constrained.solvers.status import Status
from delassus.model.bundled.build import Assembly, Revolute, rod
from delassus.model.joints import Prismatic
from delassus.step.compliant.inputs import Scheme

step, kernel = dl.stepping.compliant_step, dl.stepping.compliant_kernel


def bennett() -> tuple[dl.Mechanism, np.ndarray, np.ndarray]:
    """Bennett's loop of four skew hinges, which moves although it has five rows for three joints: rank two.

    Off its one-dimensional path the rank is three: there the loop is locked.
    """
    a, alpha, b = 1.0, 0.6, 0.7
    beta = math.asin(b * math.sin(alpha) / a)
    sides = {"a": (a, alpha), "b": (b, beta)}
    along = {name: dl.Placement.from_xyz_rpy((x, 0, 0), (turn, 0, 0)) for name, (x, turn) in sides.items()}
    links = Assembly("bennett")
    links.body("first", Revolute((0, 0, 1)), None, (0, 0, 0), [rod((0, 0, 0), (a, 0, 0), 1.0)])
    links.body("second", Revolute((0, 0, 1)), "first", along["a"], [rod((0, 0, 0), (b, 0, 0), 1.0)])
    links.body("third", Revolute((0, 0, 1)), "second", along["b"], [rod((0, 0, 0), (a, 0, 0), 1.0)])
    links.frame("end", "third", along["a"])
    links.frame("base", None, along["b"].inverse())
    mechanism = dl.Mechanism(links.model(), [dl.Hinge("end", "base", name="loop")])
    q = dl.assemble(mechanism, [2.0, -2.5, -2.0], tolerance=1e-13).q
    q, v = dl.project(mechanism, q, np.ones(3))
    return mechanism, q, 3.0 * v / np.abs(v).max()


def followed(mechanism, q, v, steps, h, friction=0.0, every=10, **options):
    """Numbers of status, errors of position and energies on the way, with friction [N·m·s/rad] in joints."""
    inputs = {name: options.pop(name) for name in ("beta",) if name in options}
    scene = step(mechanism, q, v, 0.0 * v, time_step=h, **options, **inputs).scene
    names, arrays = kernel.pack(scene, scheme=Scheme(**inputs))
    advance = kernel.specialize(scene, inputs=names, outputs=("q", "v", "status"), **options)
    statuses, errors, energies = set(), [], []
    for k in range(steps):
        q, v, status = advance(q, v, -friction * v, h, *arrays)
        statuses.add(Status(int(status)))
        if k % every == every - 1:
            errors.append(np.abs(dl.constraint_error(mechanism, q)).max())
            springs = dl.spring_energy(mechanism.model, q)
            energies.append(dl.kinetic_energy(mechanism, q, v) + dl.potential_energy(mechanism, q) + springs)
    return statuses, np.array(errors), np.array(energies)


# --- rows that repeat each other --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["none", "pre", "post", "project"])
@pytest.mark.parametrize("h", [1e-3, 1e-2])
def test_a_loop_with_more_rows_than_it_needs_moves_and_says_that_all_is_well(how, h):
    mechanism, q, v = bennett()
    start = dl.kinetic_energy(mechanism, q, v) + dl.potential_energy(mechanism, q)
    options = {"stabilization": how, "beta": 0.5, "midpoint": True}
    statuses, errors, energies = followed(mechanism, q, v, round(1.0 / h), h, **options)
    assert statuses == {Status.CONVERGED}
    assert errors.max() < {"none": 10.0, "pre": 10.0, "post": 1e-2, "project": 1e-10 / h**2}[how] * h**2
    np.testing.assert_allclose(energies, start, atol=60.0 * h)  # rows that lock would take all of it


@pytest.mark.parametrize("how", ["none", "post"])
def test_a_loop_with_more_rows_than_it_needs_moves_beside_a_contact(how):
    mechanism, q, v = bennett()
    start = dl.kinetic_energy(mechanism, q, v) + dl.potential_energy(mechanism, q)
    options = {"stabilization": how, "beta": 0.5, "midpoint": True, "contacts": dl.Contact("third", height=-10.0)}
    for _ in range(500):
        found = step(mechanism, q, v, np.zeros(3), time_step=2e-3, **options)
        q, v = found.q, found.v
        assert found.statuses is Status.CONVERGED
    assert np.abs(dl.constraint_error(mechanism, q)).max() < 1e-7
    assert abs(dl.kinetic_energy(mechanism, q, v) + dl.potential_energy(mechanism, q) - start) < 0.15


def test_the_system_that_is_formed_does_not_lock_such_a_loop_either():
    mechanism, q, v = bennett()
    q = q + np.array([1e-5, -1e-5, 2e-5])  # off its path, where rows are independent
    swept, formed = (step(mechanism, q, v, np.zeros(3), time_step=1e-3, method=name) for name in ("auto", "ldl"))
    np.testing.assert_allclose(formed.v, swept.v, rtol=1e-7)
    assert np.abs(formed.v).max() > 2.5


def test_rows_that_are_given_twice_are_met_near_a_singular_pose():
    robot = dl.load("four_bar")
    twice = dl.Mechanism(robot, list(dl.Mechanism(robot).constraints))
    q, v = dl.project(twice, robot.posture("home"), 0.5 * np.ones(robot.nv))
    statuses, errors, _ = followed(twice, q, v, 1000, 1e-3)
    assert statuses == {Status.CONVERGED} and errors.max() < 1e-4


def test_a_loop_in_a_batch_is_the_same_bits_as_alone():
    mechanism, q, v = bennett()
    away = np.random.default_rng(0).normal(size=(9, 3)) * np.logspace(-12, -2, 9)[:, None]
    together = step(mechanism, q + away, v + away, np.zeros((9, 3)), time_step=1e-3)
    for k in range(9):
        alone = step(mechanism, q + away[k], v + away[k], np.zeros(3), time_step=1e-3)
        assert np.array_equal(alone.v, together.v[k]) and alone.status == together.status[k]


@pytest.mark.parametrize("how", ["none", "pre", "post"])
def test_places_that_contradict_each_other_are_told_in_either_phase(how):
    mechanism, q, v = bennett()
    shorter = replace(mechanism.constraints[0], placement2=dl.Placement.of(p=(0.0, 0.0, 0.01)), name="shorter")
    both = dl.Mechanism(mechanism.model, [*mechanism.constraints, shorter])
    assert step(both, q, v, np.zeros(3), time_step=1e-3, stabilization=how).statuses is Status.LEAST_SQUARES


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0])
def test_what_rounding_leaves_of_a_loop_at_rest_is_no_contradiction(scale):
    mechanism, q, v = bennett()
    floating = dl.Mechanism(mechanism.model.with_gravity((0.0, 0.0, 0.0)), mechanism.constraints)
    found = step(floating, q, scale * 1e-6 * v, np.zeros(3), time_step=1e-3)
    assert found.statuses is Status.CONVERGED


# --- a minute of motion -----------------------------------------------------------------------------------------------


def locomotive() -> tuple[dl.Mechanism, np.ndarray, np.ndarray]:
    """Three equal cranks on one coupler: redundant, and singular when all of it lies in one line."""
    a = Assembly("locomotive")
    for k in range(3):
        a.body(f"crank{k}", Revolute((0, 1, 0)), None, (k, 0, 0), [rod((0, 0, 0), (0, 0, -0.5), 1.0)])
        a.frame(f"end{k}", f"crank{k}", (0, 0, -0.5))
    a.body("coupler", Revolute((0, 1, 0)), "crank0", (0, 0, -0.5), [rod((0, 0, 0), (2, 0, 0), 1.0)])
    for k in (1, 2):
        a.frame(f"pin{k}", "coupler", (k, 0, 0))
    mechanism = dl.Mechanism(a.model(), [dl.Point(f"pin{k}", f"end{k}") for k in (1, 2)])
    return mechanism, np.array([0.3, 0.3, 0.3, -0.3]), 15.0 * np.array([1.0, 1.0, 1.0, -1.0])


def turning_crank() -> tuple[dl.Mechanism, np.ndarray, np.ndarray]:
    """A slider-crank fast enough to pass its dead centres."""
    mechanism = dl.Mechanism(dl.load("slider_crank"))
    return mechanism, *dl.project(mechanism, np.zeros(3), np.array([20.0, 0.0, 0.0]), locked=["crank_joint"])


def falling(robot: str) -> tuple[dl.Mechanism, np.ndarray, np.ndarray]:
    """A bundled robot that is let go; springs in its sliders hold a Stewart platform up."""
    model = dl.load(robot)
    home = model.posture("home")
    joints = [
        replace(joint, stiffness=(2000.0,), rest=tuple(home[model.q_slice(joint.name)]))
        if robot == "stewart" and isinstance(joint.kind, Prismatic)
        else joint
        for joint in model.joints
    ]
    mechanism = dl.Mechanism(replace(model, joints=tuple(joints)))
    return mechanism, *dl.project(mechanism, home, 0.5 * np.ones(model.nv))


def hanging_biped() -> tuple[dl.Mechanism, np.ndarray, np.ndarray]:
    """A biped that hangs by its soles, upside down: loops through the ground."""
    model = dl.load("biped")
    q = model.posture("home").copy()
    q[2:7] = -q[2], 1.0, 0.0, 0.0, 0.0
    soles = [
        dl.Weld(frame, target=dl.Placement.of(*dl.frame_placement(model, q, frame=frame.name)))
        for frame in model.frames("*_sole")
    ]
    mechanism = dl.Mechanism(model, soles)
    q[:3] += 0.1, 0.03, -0.06
    return mechanism, dl.assemble(mechanism, q, locked=["pelvis_joint"], tolerance=1e-13).q, np.zeros(model.nv)


def test_a_driven_crank_keeps_its_velocity_while_its_loop_is_closed():
    mechanism, q, v = turning_crank()
    for _ in range(50):
        options = {"driven": {"crank_joint": 20.0}, "stabilization": "project"}
        found = step(mechanism, q, v, np.zeros(3), time_step=1e-3, **options)
        q, v = found.q, found.v
        assert v[0] == pytest.approx(20.0, abs=1e-12)
    assert q[0] == pytest.approx(1.0, abs=1e-9)
    assert np.abs(dl.constraint_error(mechanism, q)).max() < 1e-10
    assert np.abs(dl.constraint_jacobian(mechanism, q) @ v).max() < 1e-9


LOOPS = {
    "slider_crank": turning_crank,
    "locomotive": locomotive,
    "bennett": bennett,
    "four_bar": lambda: falling("four_bar"),
    "delta": lambda: falling("delta"),
    "stewart": lambda: falling("stewart"),
    "biped": hanging_biped,
}


def keeps_closed(name: str, steps: int) -> None:
    """Follow a mechanism at 1 ms: it stays closed, and friction alone changes its energy."""
    statuses, errors, energies = followed(*LOOPS[name](), steps, 1e-3, 0.02, stabilization="project")
    assert statuses == {Status.CONVERGED}
    assert errors.max() < 1e-10
    assert np.all(np.isfinite(energies)) and energies[-1] < energies[0]


@pytest.mark.parametrize("name", ["slider_crank", "locomotive"])
def test_loops_stay_closed_through_singular_poses(name):
    keeps_closed(name, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_loops_stay_closed_for_a_minute(name):
    keeps_closed(name, 60_000)
