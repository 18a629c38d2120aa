"""What rows weigh in MuJoCo's relaxed model: inverse masses of bodies and joints in the model's own pose.

How much a row gives way is a share of Â, an estimate of its entry of J M⁻¹ Jᵀ that does not depend on the state: for
a body the mean of the accelerations that unit forces (or moments) at its centre of mass cause there, for a joint the
mean over its directions of a kind; of two bodies or joints, the sum.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.mass.crba import crba
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.parts import Frame
from delassus.model.placement import Placement
from delassus.step.scene import Scene

Array = NDArray[np.float64]
_NAME = "a body's centre of mass"


@lru_cache(maxsize=64)
def row_weights(scene: Scene) -> Array:
    """Â (m,) [1/kg, 1/(kg·m²)] of all rows."""
    mechanism = scene.row_mechanism.plain
    model = mechanism.model
    bodies, joints = inverse_weights(model)
    motions = LinkMotions.of(model, rest(model), np.zeros(model.nv), 0.0)
    found = [_of_constraint(constraint, motions, bodies, joints) for constraint in mechanism.constraints]
    return np.concatenate(found) if found else np.zeros(0)


def inverse_weights(model: Model) -> tuple[Array, Array]:
    """Of each link, for forces and for moments (links, 2), and of each velocity (nv,)."""
    q = rest(model)
    inverse = np.linalg.inv(crba.python(model, q))
    tree = links_of(model)
    bodies = np.zeros((len(tree.links), 2))
    for j, joint in enumerate(model.joints):
        center = Frame(_NAME, j, Placement.of(p=joint.inertia.com))
        J = frame_jacobian.python(replace(model, frame_list=(center,)), q, frame=_NAME)
        A = np.diag(J @ inverse @ J.T)
        bodies[tree.bodies[j][0]] = A[:3].mean(), A[3:].mean()
    joints = np.diag(inverse).copy()
    for link in tree.links:
        for linear in (True, False) if link.motion.has_quaternion else ():
            own = [link.v + k for k, direction in enumerate(link.motion.directions) if (direction < 3) == linear]
            if own:
                joints[own] = joints[own].mean()
    return bodies, joints


def rest(model: Model) -> Array:
    """The pose that a model was written down in: MuJoCo's qpos0, or the neutral one."""
    known = {posture.name for posture in model.postures}
    return model.posture("qpos0") if "qpos0" in known else model.neutral()


def _of_constraint(constraint: Constraint, motions: LinkMotions, bodies: Array, joints: Array) -> Array:
    """Â of the rows of a constraint: those that take no linear motion of any body are rows of moments."""
    count = constraint.count(motions.model)
    parts = constraint.bodies(motions)
    turning = np.ones(count, bool)
    for body in parts:
        turning &= ~np.any(np.asarray(body.K, float)[:, :3], axis=1)
    weights = np.zeros(count)
    for body in parts:
        weights += np.where(turning, bodies[body.link, 1], bodies[body.link, 0])
    for row in constraint.joints(motions):
        weights[row.row] += joints[row.v]
    return weights
