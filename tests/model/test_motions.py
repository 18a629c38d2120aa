"""Elementary joint motions from the table: what registration refuses, and motions that one registration adds."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.model.joints import JointKind, Z
from delassus.model.motions.motion import MOTIONS, JointMotion, register_motion
from delassus.model.motions.moves import Shift, Turn
from joint_cases import random_inertia, random_placement

PITCH = 0.3


@dataclass(frozen=True)
class SlideMotion(JointMotion):
    """In the plane of x and y, without turning."""

    name = "slide of a test"
    directions = (0, 1)

    def moves(self, x, pitch):
        return (Shift(dnp.stack([x[0], x[1], 0.0])),)


@dataclass(frozen=True)
class ScrewMotion(JointMotion):
    """About z, and along it by a pitch of its own."""

    name = "screw"
    directions = (5,)
    along_axes = False

    def moves(self, x, pitch):
        return Shift(dnp.stack([0.0, 0.0, PITCH * x[0]])), Turn(x[0])

    def subspace(self, pitch):
        return np.array([[0.0, 0.0, PITCH, 0.0, 0.0, 1.0]]).T


@dataclass(frozen=True)
class Of(JointKind):
    """A joint of one motion."""

    motion: JointMotion
    label = "new"

    @property
    def elements(self):
        return ((self.motion, Z, 0.0),)


def plane_of_pinocchio():
    composite = pin.JointModelComposite(2)
    composite.addJoint(pin.JointModelPX(), pin.SE3.Identity())
    composite.addJoint(pin.JointModelPY(), pin.SE3.Identity())
    return composite


NEW = {"slide": (SlideMotion(), plane_of_pinocchio), "screw": (ScrewMotion(), lambda: pin.JointModelHZ(PITCH))}


@pytest.fixture(params=NEW)
def robot(request):
    """A joint of a new motion between two revolute ones, here and in Pinocchio, and a state."""
    motion, joint = NEW[request.param]
    register_motion(motion)
    rng, theirs, joints = np.random.default_rng(1), pin.Model(), []
    kinds = (dl.Revolute(), pin.JointModelRZ()), (Of(motion), joint()), (dl.Revolute(), pin.JointModelRZ())
    for k, (kind, other) in enumerate(kinds):
        placement, inertia = random_placement(rng), random_inertia(rng)
        i = theirs.addJoint(k, other, placement, f"j{k}")
        theirs.appendBodyToJoint(i, inertia, pin.SE3.Identity())
        body = dl.Inertia.of(inertia.mass, inertia.lever, inertia.inertia)
        where = dl.Placement.of(placement.rotation, placement.translation)
        joints.append(dl.Joint(f"j{k}", kind, k - 1, where, body))
    theirs.addFrame(pin.Frame("tip", 3, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    model = dl.Model("new", tuple(joints), (dl.Frame("tip", 2),))
    yield model, theirs, rng.normal(size=(3, model.nv))
    del MOTIONS[motion.name]


def test_inverse_dynamics_of_a_new_motion_are_those_of_pinocchio(robot):
    model, theirs, (q, v, a) = robot
    np.testing.assert_allclose(dl.rnea(model, q, v, a), pin.rnea(theirs, theirs.createData(), q, v, a), atol=1e-12)


def test_forward_dynamics_of_a_new_motion_are_those_of_pinocchio(robot):
    model, theirs, (q, v, tau) = robot
    np.testing.assert_allclose(dl.aba(model, q, v, tau), pin.aba(theirs, theirs.createData(), q, v, tau), atol=1e-11)


def test_the_mass_matrix_of_a_new_motion_is_that_of_pinocchio(robot):
    model, theirs, (q, _, _) = robot
    M = pin.crba(theirs, theirs.createData(), q)
    np.testing.assert_allclose(dl.crba(model, q), np.triu(M) + np.triu(M, 1).T, atol=1e-12)


def test_the_jacobian_of_a_new_motion_is_that_of_pinocchio(robot):
    model, theirs, (q, _, _) = robot
    J = pin.computeFrameJacobian(theirs, theirs.createData(), q, theirs.getFrameId("tip"), pin.LOCAL)
    np.testing.assert_allclose(dl.frame_jacobian(model, q, frame="tip"), J, atol=1e-12)


def test_constrained_dynamics_of_a_new_motion_agree_by_two_methods(robot):
    model, _, (q, v, tau) = robot
    mechanism = dl.Mechanism(model, [dl.Point("tip", rows="z")])
    found = [f(mechanism, q, v, tau)[0] for f in (dl.caba, dl.kkt)]
    np.testing.assert_allclose(*found, atol=1e-8)


def test_a_new_motion_is_integrated_locked_and_drawn_at_random(robot):
    model, _, (q, v, _) = robot
    np.testing.assert_allclose(dl.difference(model, q, dl.integrate(model, q, v)), v, atol=1e-14)
    assert model.random_configuration(np.random.default_rng(0), 4).shape == (4, model.nq)
    locked = model.lock("j1", q=q)
    np.testing.assert_allclose(
        np.hstack(dl.frame_placement(locked, q[[0, -1]], frame="tip")[0]),
        np.hstack(dl.frame_placement(model, q, frame="tip")[0]),
        atol=1e-13,
    )


def test_a_name_belongs_to_one_motion():
    @dataclass(frozen=True)
    class Other(SlideMotion):
        name = "revolute"

    with pytest.raises(ValueError, match="'revolute' is registered already"):
        register_motion(Other())


@pytest.mark.parametrize("wrong", [(), (1, 0), (0, 0), (6,)])
def test_directions_are_those_of_a_spatial_velocity_in_order(wrong):
    @dataclass(frozen=True)
    class Other(SlideMotion):
        name = "other"
        directions = wrong

    with pytest.raises(ValueError, match="they must be some of 0 to 5"):
        register_motion(Other())


def test_a_spread_has_a_number_for_each_coordinate():
    @dataclass(frozen=True)
    class Other(SlideMotion):
        name = "other"
        spread = (1.0,)

    with pytest.raises(ValueError, match="2 coordinates and a spread of 1"):
        register_motion(Other())


def test_a_motion_says_how_it_moves():
    with pytest.raises(NotImplementedError, match="implement its method `moves`"):
        JointMotion.moves(SlideMotion(), (), 0.0)
