"""The world is a frame of every model, by the name "world"."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.equality import Connect
from delassus.model.joints import Revolute
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame, Joint
from delassus.model.placement import HERE, Inertia, Placement
from refusals import refuses
from urdf_samples import joint, link, robot

BALL = Inertia.of(2.0, (0.1, 0.2, 0.3), np.diag([0.3, 0.4, 0.5]))
TURN = Placement.from_xyz_rpy((0.1, -0.2, 0.3), (0.4, 0.5, -0.6))
PENDULUM = '<mujoco model="m"><worldbody><body name="b"><joint/><geom size="1"/></body></worldbody></mujoco>'


def pendulum(*frames: Frame, constraints: tuple[Connect, ...] = ()) -> Model:
    return Model("pendulum", (Joint("hinge", Revolute(), inertia=BALL),), frames, constraints=constraints)


def test_every_model_has_the_frame_of_the_world():
    frame = pendulum().frame("world")
    assert (frame.joint, frame.placement) == (WORLD, HERE)


def test_it_is_not_listed_among_the_frames_that_a_model_names():
    model = pendulum(Frame("tip", 0))
    assert [frame.name for frame in model.frames("*")] == ["tip"]
    assert model.nframes == 1


def test_a_pattern_that_is_its_name_finds_it():
    assert pendulum().frames("world") == (pendulum().frame("world"),)


@pytest.mark.parametrize("reference", ["LOCAL", "WORLD", "LOCAL_WORLD_ALIGNED"])
def test_it_stands_still(reference):
    model, q, v = pendulum(), [0.3], [0.7]
    R, p = dl.frame_placement.python(model, q, frame="world")
    assert np.array_equal(R, np.eye(3))
    assert np.array_equal(p, np.zeros(3))
    options = {"frame": "world", "reference": reference}
    assert not dl.frame_jacobian.python(model, q, **options).any()
    assert not dl.frame_velocity.python(model, q, v, **options).any()
    assert not dl.frame_acceleration.python(model, q, v, v, **options).any()
    assert not dl.frame_bias.python(model, q, v, **options).any()
    assert not np.any(dl.frame_velocity_derivatives.python(model, q, v, **options))
    assert not np.any(dl.frame_acceleration_derivatives.python(model, q, v, v, **options))


def test_a_compiled_kernel_knows_it():
    _, p = dl.frame_placement(pendulum(), [0.3], frame="world")
    assert np.array_equal(p, np.zeros(3))


def test_frames_are_placed_on_it():
    assert pendulum().with_frame("table", "world", TURN).frame("table") == Frame("table", WORLD, TURN)


def test_models_are_attached_to_it():
    both = pendulum().attach(pendulum(), "world", TURN, "second_")
    assert (both.joint("second_hinge").parent, both.joint("second_hinge").placement) == (WORLD, TURN)


@pytest.mark.parametrize("frame", [Frame("world", 0), Frame("world", WORLD, TURN)])
def test_no_other_frame_has_its_name(frame):
    with refuses("duplicate-name", "'world'"):
        pendulum(frame)


def test_a_frame_with_its_name_may_be_listed_where_it_is():
    model = pendulum(Frame("world", WORLD))
    assert model.nframes == 1
    assert model.frame("world") == Frame("world", WORLD)


def test_the_world_of_mjcf_is_it():
    frame = dl.load(PENDULUM).frame("world")
    assert (frame.joint, frame.placement) == (WORLD, HERE)


def test_the_fixed_root_link_world_of_a_urdf_is_it():
    model = dl.load(robot(link("world", ""), link("a"), joint("hinge", "world", "a")))
    assert model.frame("world") == Frame("world", WORLD, HERE, "link")
    assert model.warnings == ()


def test_a_root_link_world_that_moves_is_renamed_with_a_warning():
    model = dl.load(robot(link("world"), link("a"), joint("hinge", "world", "a")), root="free")
    assert model.frame("world").joint == WORLD
    assert model.frame("world_link").joint == 0
    assert any("link 'world'" in warning and "'world_link'" in warning for warning in model.warnings)


def test_a_new_name_is_not_that_of_another_link():
    text = robot(link("world"), link("world_link"), joint("hinge", "world", "world_link"))
    model = dl.load(text, root="free")
    assert (model.frame("world_link2").joint, model.frame("world_link").joint) == (0, 1)


def test_the_frame_of_a_joint_named_world_is_renamed():
    model = dl.load(robot(link("base"), link("a"), joint("world", "base", "a")))
    assert model.frame("world").joint == WORLD
    assert model.frame("world_joint").joint == model.joint_index("world")


def test_a_moving_frame_of_pinocchio_is_renamed():
    pin = pytest.importorskip("pinocchio")
    theirs = pin.Model()
    hinge = theirs.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "hinge")
    theirs.addFrame(pin.Frame("world", hinge, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    model = dl.from_pinocchio(theirs)
    assert (model.frame("world").joint, model.frame("world_link").joint) == (WORLD, 0)


def test_the_world_of_an_attached_model_has_a_name_there():
    both = dl.load(PENDULUM).attach(dl.load(PENDULUM), "b", TURN, "second_")
    assert both.frame("second_world").placement == TURN


def test_without_a_prefix_it_is_named_after_its_model():
    child = dl.load(PENDULUM.replace('"b"', '"c"').replace("<joint/>", '<joint name="hinge"/>'))
    both = dl.load(PENDULUM).attach(child, "b", TURN)
    assert both.frame("m_world").placement == TURN
    assert both.frame("world").joint == WORLD


def test_constraints_on_it_are_kept_where_a_model_is_attached():
    tied = pendulum(Frame("tip", 0, TURN), constraints=(Connect("rod", "tip", "world"),))
    both = pendulum(Frame("hand", 0)).attach(tied, "hand", TURN, "second_")
    assert both.frame(both.constraints[0].frame2) == Frame("second_world", 0, TURN, "link")


def test_it_is_no_parameter():
    model = dl.load(PENDULUM)
    assert "frame:world" not in [part.name for part in model.parametric("frame").parts]
    with refuses("bad-parameter", "world"):
        model.parametric("frame:world")


def test_it_is_no_difference_whether_a_model_lists_it():
    assert dl.compare(pendulum(), pendulum(Frame("world", WORLD))) == ()


def test_a_name_like_it_is_answered_with_it():
    with refuses("unknown-frame", "world"):
        pendulum().frame("wrld")


def test_it_has_no_number_where_it_is_not_listed():
    with refuses("unknown-frame"):
        pendulum().frame_index("world")
