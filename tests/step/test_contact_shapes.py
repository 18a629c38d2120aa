"""A step of `contact_dynamics` with collision shapes: against `Simulation`, named points, MuJoCo and closed forms."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.model.bundled.build import Assembly, ball
from delassus.model.joints import Free
from refusals import refuses

SHORT = 1e-5
"""Steps in which velocity products at rest, of second order in the step, are below the tolerances here."""


def crate(file: str = "", floor: str = '<geom name="floor" type="plane" size="1 1 1"/>') -> dl.Model:
    """A box of 2 kg above the plane of a file, and a smaller one on it."""
    return dl.load(
        f"""<mujoco><worldbody>{floor}
        <body pos="0 0 .1"><freejoint name="crate"/>
          <geom name="crate" type="box" size=".2 .15 .1" mass="2" {file}/></body>
        <body pos="0 0 .25"><freejoint name="lid"/>
          <geom name="lid" type="box" size=".1 .1 .05" mass="1" {file}/></body>
        </worldbody></mujoco>"""
    )


STACK = crate()
REST, NONE = STACK.posture("qpos0"), np.zeros(12)


def step_of(robot, q, v=None, **options):
    rest = np.zeros(robot.nv)
    return dl.contact_dynamics(robot, q, rest if v is None else v, rest, **{"time_step": 1e-3, **options})


# --- the first step of a simulation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["quadruped", "biped"])
def test_a_robot_makes_the_first_step_of_its_simulation(name):
    robot = dl.load(name)
    options = {"self_collision": False, "tolerance": 1e-12}
    sim = dl.Simulation(robot, dl.Ground(), SHORT, actuators=(), max_limits=0, joint_friction=False, **options)
    state = sim.start(robot.posture("home"))
    step = step_of(robot, state.q, time_step=SHORT, touching="*", **options)
    after = sim.step(state)
    assert np.count_nonzero(step.impulse[2 : step.scene.contact_end : 3]) >= 4
    np.testing.assert_allclose(step.velocity, after.v, atol=1e-8 * np.abs(after.v).max())
    np.testing.assert_allclose(step.q, after.q, atol=1e-12)


def test_pairs_of_shapes_make_the_first_step_of_their_simulation():
    v = np.array([0.0, 0.0, 0.0, 0.3, -0.1, 0.0, 0.0, 0.0, 0.0, -0.4, 0.2, 0.0])
    options = {"tolerance": 1e-12, "max_contacts": 12, "method": "newton"}
    sim = dl.Simulation(STACK, dl.Ground(friction=0.5), max_limits=0, **options)
    step = step_of(STACK, REST, v, touching="*", friction=0.5, **options)
    after = sim.step(sim.start(REST, v))
    np.testing.assert_allclose(step.velocity, after.v, atol=1e-8)
    assert any(name.startswith(("crate on lid", "lid on crate")) for name in step.contacts.name)


@pytest.mark.parametrize("friction", [None, 0.2])
def test_friction_is_the_files_unless_it_is_given(friction):
    robot = crate('friction=".4"', floor='<geom type="plane" size="1 1 1" friction=".4"/>')
    v = np.zeros(12)
    v[[0, 6]] = 2.0
    step = step_of(robot, REST, v, touching="*", friction=friction, max_contacts=12, tolerance=1e-12)
    share = 0.4 if friction is None else friction
    np.testing.assert_allclose(step.velocity[[0, 6]], 2.0 - share * 9.81e-3, atol=1e-6)
    np.testing.assert_allclose(step.problem.solve(tolerance=1e-10).residual, 0.0, atol=1e-8)


# --- named points -----------------------------------------------------------------------------------------------------


def test_balls_of_a_robot_have_the_impulses_of_points_with_their_radius():
    robot = dl.load("quadruped")
    radius = next(g for g in robot.geometries if g.name.endswith("calf_1")).size[0]
    feet = [dl.Contact(frame.name, radius=radius, friction=0.6) for frame in robot.frames("*_foot")]
    rng = np.random.default_rng(0)
    q, v = robot.posture("home"), 0.1 * rng.normal(size=robot.nv)
    options = {"normal": (0.1, 0.2, 1.0), "restitution": 0.3, "tolerance": 1e-12}
    points = step_of(robot, q, v, contacts=feet, **options)
    shapes = step_of(robot, q, v, touching="*_calf_1", friction=0.6, self_collision=False, **options)
    np.testing.assert_allclose(shapes.gap, points.gap, atol=1e-12)
    np.testing.assert_allclose(shapes.velocity, points.velocity, atol=1e-9)
    np.testing.assert_allclose(shapes.impulse, points.impulse, atol=1e-9)


def test_points_of_a_selection_are_named_as_they_are():
    a = Assembly("ball")
    a.body("ball", Free(), None, (0, 0, 0), [ball(0.1, 2.0)])
    step = step_of(a.model(), [0, 0, 0.1, 0, 0, 0, 1], touching=[dl.Contact("ball", radius=0.1, name="sole")])
    np.testing.assert_allclose(step.impulses["sole"], [0.0, 0.0, 2.0 * 9.81e-3], atol=1e-9)


# --- contact points ---------------------------------------------------------------------------------------------------

SHAPES = {
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".05 .2"',
    "box": 'type="box" size=".1 .2 .05"',
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_contacts_are_where_mujoco_has_them(shape):
    text = f"""<mujoco><worldbody><geom type="plane" size="5 5 1" zaxis=".1 -.2 1"/>
      <body pos="0 0 .05" quat=".9 .3 .2 -.1"><freejoint/><geom name="it" {shape} mass="1"/></body>
      </worldbody></mujoco>"""
    theirs, robot = mujoco.MjModel.from_xml_string(text), dl.load(text)
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    step = step_of(robot, robot.posture("qpos0"), touching="*")
    order = np.argsort(step.gap)[: data.ncon]
    middle = step.contacts.point - 0.5 * step.gap[:, None] * step.contacts.normal
    expected = sorted(data.contact, key=lambda contact: contact.dist)
    np.testing.assert_allclose(step.gap[order], [contact.dist for contact in expected], atol=1e-9)
    np.testing.assert_allclose(middle[order], [contact.pos for contact in expected], atol=1e-9)
    np.testing.assert_allclose(step.contacts.normal[order], [contact.frame[:3] for contact in expected], atol=1e-9)


# --- results ----------------------------------------------------------------------------------------------------------


def test_impulses_of_a_shape_carry_all_that_is_on_it():
    step = step_of(STACK, REST, touching="*", max_contacts=12)
    weight = dict.fromkeys(("crate", "lid"), 0.0)
    for name, impulse in step.impulses.items():
        weight[name.partition("_")[0] if " on " not in name else "lid"] += impulse[2]
    assert weight == pytest.approx({"crate": 3.0 * 9.81e-3, "lid": 1.0 * 9.81e-3}, rel=1e-6)


def test_a_problem_has_the_impulses_of_its_step_for_all_states():
    q = np.tile(REST, (3, 1))
    q[1, [2, 9]] += 0.5
    v = np.random.default_rng(0).normal(size=(3, 12))
    step = step_of(STACK, q, v, touching="*", max_contacts=12)
    problem = dl.contact_problem(STACK, q, v, NONE, touching="*", max_contacts=12, time_step=1e-3)
    moving = problem.G @ step.impulse[..., None]
    np.testing.assert_allclose(moving[..., 0] + problem.g, step.row_velocity, atol=1e-9)
    assert not step.impulse[1].any()


def test_slots_that_do_not_suffice_are_reported():
    step = step_of(STACK, REST, touching="*", max_contacts=3)
    assert step.contacts.overflow
    assert "max_contacts" in step.describe()
    assert not step_of(STACK, REST, touching="*", max_contacts=12).contacts.overflow


def test_a_model_without_shapes_falls():
    robot = dl.load("pendulum")
    step = step_of(robot, [1.0], touching=())
    np.testing.assert_allclose(step.velocity, 1e-3 * dl.aba(robot, [1.0], [0.0], [0.0]), atol=1e-12)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"touching": "*", "law": "soft"}, "not-supported", ("'soft'", "Contact")),
        ({"touching": "*", "law": "relaxed"}, "not-supported", ("'relaxed'", "Contact")),
        ({"touching": "*", "time_step": None}, "missing-argument", ("time_step",)),
        ({"touching": "*", "contacts": [dl.Contact("crate")]}, "conflicting-arguments", ("touching",)),
        ({"touching": "wheel*"}, "unknown-shape", ("wheel*", "crate")),
        ({"colliding": [("crate", "wheel")]}, "unknown-shape", ("wheel",)),
        ({"contacts": dl.ContactSelection(max_limits=1)}, "conflicting-arguments", ("max_limits", "limits=")),
        ({"contacts": dl.ContactSelection(), "touching": "lid"}, "conflicting-arguments", ("touching", "'lid'")),
        ({"touching": "*", "friction": -1.0}, "friction-out-of-range", ("-1",)),
        ({"touching": "*", "normal": (0.0, 0.0, 0.0)}, "zero-direction", ("normal",)),
        ({"touching": "*", "normal": (0.0, 0.0, np.nan)}, "zero-direction", ("normal", "nan")),
        ({"touching": "*", "max_contacts": -1}, "out-of-range", ("max_contacts", "-1")),
    ],
)
def test_what_shapes_cannot_have_is_refused(options, code, named):
    with refuses(code, *named):
        step_of(STACK, REST, **options)


def test_a_set_of_names_selects_as_a_list_does():
    steps = [step_of(STACK, REST, touching=names) for names in ({"crate"}, ["crate"])]
    np.testing.assert_array_equal(steps[0].velocity, steps[1].velocity)


@pytest.mark.parametrize("name", ["friction", "restitution", "height"])
def test_values_of_another_batch_are_refused_by_name(name):
    with refuses("batch-mismatch", name, "(2,)", "(3,)"):
        step_of(STACK, np.tile(REST, (3, 1)), touching="*", **{name: np.full(2, 0.5)})


def test_contacts_that_are_not_there_are_refused_with_the_nearest():
    with refuses("unknown-name", "crate_9", "crate_8"):
        step_of(STACK, REST, touching="*").impulses["crate_9"]


def test_a_file_without_ground_has_none_and_its_field_is_refused():
    bare = crate(floor="")
    assert not step_of(bare, REST, touching="*").impulses["crate on lid_1"][2]
    with refuses("conflicting-arguments", "crate", "height"):
        step_of(bare, REST, touching="crate")
    np.testing.assert_allclose(step_of(bare, REST, touching="crate", height=0.0).gap, 0.0, atol=1e-12)


def test_inverse_dynamics_takes_points():
    with refuses("not-supported", "Contact"):
        dl.contact_inverse_dynamics(STACK, REST, NONE, NONE, contacts=dl.contact.ShapeSelection(), time_step=1e-3)
