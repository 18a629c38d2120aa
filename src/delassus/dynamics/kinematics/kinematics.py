"""Forward kinematics: poses and velocities of bodies and frames.

References follow Pinocchio. LOCAL: at the frame's origin, in its axes. WORLD: at the world's origin, in its axes.
LOCAL_WORLD_ALIGNED: at the frame's origin, in the world's axes. Spatial vectors are linear first.
"""

from typing import Any, Final

import delassus.numpy as np
from delassus.common.checks import one_of
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.tree.poses import Pair, fixed_pose, poses_of
from delassus.dynamics.tree.recursion import joint_motions, link_velocities
from delassus.model.links import Links, links_of
from delassus.model.model import Model
from delassus.model.parts import WORLD

REFERENCES: Final = ("LOCAL", "WORLD", "LOCAL_WORLD_ALIGNED")


@kernel("(nq)->(njoints,3,3),(njoints,3)")
def forward_kinematics(model: Model, q: Traced) -> tuple[Floats, Floats]:
    """Rotations (njoints, 3, 3) and origins (njoints, 3) [m] of the bodies' frames in the world.

    >>> R, p = dl.forward_kinematics(dl.load("double_pendulum"), np.zeros(2))
    >>> R.shape, p.shape
    ((2, 3, 3), (2, 3))
    """
    tree = links_of(model)
    world = world_poses(tree, q)
    return _stacked([fixed_pose(body).compose(*world[link]) for link, body in tree.bodies])


@kernel("(nq)->(nframes,3,3),(nframes,3)")
def frame_placements(model: Model, q: Traced) -> tuple[Floats, Floats]:
    """Rotations (nframes, 3, 3) and origins (nframes, 3) [m] of all named frames in the world.

    >>> robot = dl.load("double_pendulum")
    >>> R, p = dl.dynamics.frame_placements(robot, np.zeros(2))
    >>> p.shape == (robot.nframes, 3)
    True
    """
    tree = links_of(model)
    world = world_poses(tree, q)
    return _stacked([_in_world(model, tree, world, frame.name) for frame in model.frame_list])


@kernel("(nq)->(3,3),(3)")
def frame_placement(model: Model, q: Traced, *, frame: str) -> tuple[Floats, Floats]:
    """Rotation (3, 3) and origin (3,) [m] of one frame in the world.

    >>> R, p = dl.frame_placement(dl.load("double_pendulum"), np.zeros(2), frame="tip")
    >>> R.shape, p.shape
    ((3, 3), (3,))
    """
    tree = links_of(model)
    return _in_world(model, tree, world_poses(tree, q), frame)


@kernel("(nq),(nv)->(6)")
def frame_velocity(model: Model, q: Traced, v: Traced, *, frame: str, reference: str = "LOCAL") -> Floats:
    """The spatial velocity (6,) [m/s, rad/s] of a frame.

    >>> dl.dynamics.frame_velocity(dl.load("double_pendulum"), np.zeros(2), np.ones(2), frame="tip").shape
    (6,)
    """
    velocity, _ = _local_motion(model, q, v, np.zeros(model.nv), frame)
    return np.concatenate(express_motion(model, q, frame, reference, velocity))


@kernel("(nq),(nv),(nv)->(6)")
def frame_acceleration(
    model: Model, q: Traced, v: Traced, a: Traced, *, frame: str, reference: str = "LOCAL", classical: bool = False
) -> Floats:
    """The spatial acceleration (6,) [m/s², rad/s²] of a frame.

    With `classical`, the linear part is the acceleration of the point of reference as a point of the body: of the
    frame's origin or, for WORLD, of the point that is now at the world's origin.

    >>> robot, zero = dl.load("double_pendulum"), np.zeros(2)
    >>> dl.dynamics.frame_acceleration(robot, zero, zero, zero, frame="tip").shape
    (6,)
    """
    velocity, acceleration = _local_motion(model, q, v, a, frame)
    lin, ang = express_motion(model, q, frame, reference, acceleration)
    if classical:
        v_lin, v_ang = express_motion(model, q, frame, reference, velocity)
        lin = lin + np.cross(v_ang, v_lin)
    return np.concatenate([lin, ang])


@kernel("(nq),(nv)->(6)")
def frame_bias(model: Model, q: Traced, v: Traced, *, frame: str, reference: str = "LOCAL") -> Floats:
    """J̇ v (6,) [m/s², rad/s²] for the frame's Jacobian J in the same reference: the acceleration for v̇ = 0.

    >>> dl.dynamics.frame_bias(dl.load("double_pendulum"), np.zeros(2), np.ones(2), frame="tip").shape
    (6,)
    """
    velocity, (lin, ang) = _local_motion(model, q, v, np.zeros(model.nv), frame)
    if reference == "LOCAL_WORLD_ALIGNED":  # the axes are constant, the origin moves
        lin = lin + np.cross(velocity[1], velocity[0])
    return np.concatenate(express_motion(model, q, frame, reference, (lin, ang)))


def _stacked(pairs: list[Pair]) -> Pair:
    """Stack rotations (n, 3, 3) and origins (n, 3) of n frames; n may be zero."""
    if not pairs:
        return np.zeros((0, 3, 3)), np.zeros((0, 3))
    return np.stack([R for R, _ in pairs]), np.stack([p for _, p in pairs])


def world_poses(tree: Links, q: Any) -> list[Pair]:
    """Rotation and origin of every link in the world."""
    world: list[Pair] = []
    for link, pose in zip(tree.links, poses_of(tree, q), strict=True):
        R, p = (np.array(np.eye(3)), np.zeros(3)) if link.parent < 0 else world[link.parent]
        world.append(pose.compose(R, p))
    return world


def frame_in_world(model: Model, q: Any, frame: str) -> Pair:
    """Rotation and origin of a frame in the world, as a part of other algorithms."""
    tree = links_of(model)
    return _in_world(model, tree, world_poses(tree, q), frame)


def _in_world(model: Model, tree: Links, world: list[Pair], name: str) -> Pair:
    frame = model.frame(name)
    link, placement = tree.place(frame.joint, frame.placement)
    R, p = (np.array(np.eye(3)), np.zeros(3)) if link == WORLD else world[link]
    return fixed_pose(placement).compose(R, p)


def _local_motion(model: Model, q: Any, v: Any, a: Any, name: str) -> tuple[Pair, Pair]:
    """Velocity and spatial acceleration of a frame, in LOCAL."""
    tree = links_of(model)
    poses = poses_of(tree, q)
    velocity, product = link_velocities(tree, poses, joint_motions(tree, v))
    a_J = joint_motions(tree, a)
    acceleration: list[Pair] = []
    for i, link in enumerate(tree.links):
        lin, ang = (np.zeros(3), np.zeros(3)) if link.parent < 0 else acceleration[link.parent]
        lin, ang = poses[i].motion_to_child(lin, ang)
        acceleration.append((lin + product[i][0] + a_J[i][0], ang + product[i][1] + a_J[i][1]))
    frame = model.frame(name)
    at, placement = tree.place(frame.joint, frame.placement)
    if at == WORLD:
        return (np.zeros(3), np.zeros(3)), (np.zeros(3), np.zeros(3))
    pose = fixed_pose(placement)
    return pose.motion_to_child(*velocity[at]), pose.motion_to_child(*acceleration[at])


def express_motion(model: Model, q: Any, frame: str, reference: str, motion: Pair) -> Pair:
    """Transform a motion from LOCAL to another reference."""
    check_reference(reference)
    if reference == "LOCAL":
        return motion
    R, p = frame_in_world(model, q, frame)
    lin, ang = R @ motion[0], R @ motion[1]
    return (lin, ang) if reference == "LOCAL_WORLD_ALIGNED" else (lin - np.cross(ang, p), ang)


def check_reference(reference: str) -> None:
    """Raise unless a reference is one of the three."""
    one_of("reference", reference, REFERENCES)
