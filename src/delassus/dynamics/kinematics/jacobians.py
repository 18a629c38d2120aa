"""Frame Jacobians: maps from joint velocities to spatial velocities, with O(d) columns for depth d."""

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.kinematics.kinematics import check_reference, frame_in_world, world_poses
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.parts import WORLD


@kernel("(nq)->(6,nv)")
def frame_jacobian(model: Model, q: Traced, *, frame: str, reference: str = "LOCAL") -> Floats:
    """The Jacobian (6, nv) of a frame: its spatial velocity is J v, linear rows first.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        frame: The frame's name.
        reference: "LOCAL", "WORLD" or "LOCAL_WORLD_ALIGNED", as in Pinocchio (see `kinematics`).

    >>> robot, q, v = dl.load("double_pendulum"), np.array([0.1, 0.2]), np.array([1.0, 2.0])
    >>> J = dl.frame_jacobian(robot, q, frame="tip")
    >>> bool(np.allclose(J @ v, dl.dynamics.frame_velocity(robot, q, v, frame="tip")))
    True
    """
    check_reference(reference)
    tree = links_of(model)
    world = world_poses(tree, q)
    R, p = frame_in_world(model, q, frame)
    J = np.zeros((6, model.nv))
    place = model.frame(frame)
    at = WORLD if place.joint == WORLD else tree.bodies[place.joint][0]
    for i in tree.path(at):
        link = tree.links[i]
        S_lin, S_ang = link.subspace
        R_i, p_i = world[i]
        point = np.zeros(3) if reference == "WORLD" else p  # the linear rows are the velocity of this point
        for k in range(link.motion.nv):
            ang = R_i @ S_ang[:, k]
            lin = R_i @ S_lin[:, k] + np.cross(ang, point - p_i)
            if reference == "LOCAL":
                lin, ang = R.T @ lin, R.T @ ang
            column = np.concatenate([lin, ang])
            J[:, link.v + k] = J[:, link.v + k] + (column if link.ratio == 1.0 else link.ratio * column)
    return J
