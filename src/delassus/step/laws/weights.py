"""Inverse weights Â of rows under MuJoCo's contact law, from the model's reference pose.

The compliance of a row is proportional to Â, an estimate of its diagonal entry of J M⁻¹ Jᵀ that does not depend on the
state. For a body, Â is the mean acceleration that unit forces (or moments) at its center of mass cause there; for a
joint, the mean over its linear or its angular directions; for a tendon, its own entry. A row between two bodies, joints
or tendons has the sum of both.

For a model with parameters, weights are functions of these, so environments with different masses have their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.host.definition import plainly
from delassus.constrained.elimination.tree_factor import eliminate_rows_of
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.kinds.rotation_angle import RotationAngle
from delassus.constraints.kinds.tendon_length import TendonLength
from delassus.constraints.kinds.unilateral import UnilateralRow
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, factor_tree
from delassus.geometry.point_jacobians import PointJacobians
from delassus.model.links import links_of
from delassus.model.model import Model, TracedModel
from delassus.model.parts import WORLD, Impedance
from delassus.model.placement import Placement
from delassus.step.scene import Scene

Array = NDArray[numpy.float64]


class InverseMass:
    """M⁻¹ of a model in its reference pose, by factors; values are traced if those of the model are."""

    def __init__(self, model: Model) -> None:
        self.model, self.tree, q = model, links_of(model), rest(model)
        self.above = ancestors(model)
        self.U, self.D = factor_tree(self.above, mass_matrix(model, q))
        self.poses = world_poses(self.tree, q)
        self.reach = PointJacobians.of(self.tree, model.nv, self.poses)
        self._bodies: dict[tuple[int, Any], Any] = {}

    def entries(self, J: Any) -> Any:
        """The diagonal (n,) of J M⁻¹ Jᵀ for rows J (n, nv)."""
        Y = eliminate_rows_of(self.above, self.U, self.D, J)[0]
        return np.stack([np.sum(y * y * self.D) for y in Y])

    def body(self, link: int, center: tuple[float, ...] = ()) -> Any:
        """Weights (2,) of forces and moments on a link, at a point of the link or at its center of mass."""
        if (link, center) not in self._bodies:
            local = center or self.tree.links[link].inertia.com
            R, p = self.poses[link]
            point = p + R @ np.array(local)
            A = self.entries(self.reach.rows(link, frozenset({link}), point, np.eye(3), 6))
            self._bodies[link, center] = np.stack([np.sum(A[:3]) / 3.0, np.sum(A[3:]) / 3.0])
        return self._bodies[link, center]

    def placed(self, joint: int, center: tuple[float, ...] = ()) -> Any:
        """Weights (2,) of a body on a joint, at a center of mass in the joint's frame; zero for the world."""
        if joint == WORLD:
            return np.zeros(2)
        link, at = self.tree.place(joint, Placement.of(p=center or (0.0, 0.0, 0.0)))
        return self.body(link, tuple(numpy.asarray(at.p, float).tolist()) if center else ())

    def joints(self) -> Any:
        """Weights (nv,) of joint velocities."""
        own = np.array(self.entries(np.array(numpy.eye(self.model.nv))))
        for link in self.tree.links:
            for linear in (True, False) if link.motion.has_quaternion else ():
                some = [link.v + k for k, direction in enumerate(link.motion.directions) if (direction < 3) == linear]
                if some:
                    own[some] = np.sum(own[some]) / float(len(some))
        return own


class SceneWeights(NamedTuple):
    """Weights of candidates for contact (candidates,), and of all other rows (rows,)."""

    contacts: Any
    others: Any


def scene_weights(scene: Scene) -> SceneWeights:
    """Â of the rows of a scene with contact slots."""
    if isinstance(scene.model, TracedModel):
        return _scene_weights(scene)
    with plainly():
        return _plain_weights(scene)


@lru_cache(maxsize=64)
def _plain_weights(scene: Scene) -> SceneWeights:
    return _scene_weights(scene)


def _scene_weights(scene: Scene) -> SceneWeights:
    inverse, soft = InverseMass(scene.model), scene.impedances
    contacts = []
    for shape, other, _ in scene.candidate_shapes:
        total = inverse.placed(shape.geometry.joint, shape.geometry.center)[0]
        total = total if other is None else total + inverse.placed(other.geometry.joint, other.geometry.center)[0]
        contacts.append(np.array(total))
    own = (*scene.bilateral_constraints, *scene.stops, *scene.joint_friction_rows)
    given = () if soft is None else (*soft.constraints, *soft.one_sided, *soft.joint_limits)
    others = _constraint_weights(inverse, own, (*given, *[Impedance()] * (len(own) - len(given))))
    return SceneWeights(np.stack(contacts) if contacts else np.zeros(0), others)


@lru_cache(maxsize=64)
def row_weights(scene: Scene) -> Array:
    """Â (m,) [1/kg, 1/(kg·m²)] of all rows of a scene with named contact points."""
    mechanism = scene.row_mechanism.plain
    with plainly():
        weights = _constraint_weights(InverseMass(mechanism.model), mechanism.constraints)
    return numpy.asarray(weights, float)


def rest(model: Model) -> Array:
    """The reference pose of a model: MuJoCo's qpos0, or the neutral configuration."""
    known = {posture.name for posture in model.postures}
    return model.posture("qpos0") if "qpos0" in known else model.neutral()


def _constraint_weights(
    inverse: InverseMass, constraints: Sequence[Constraint], impedances: Sequence[Impedance] = ()
) -> Any:
    """Â of the rows of constraints; a row without a linear motion of a body has the weight of moments."""
    model = inverse.model
    plain = model.sample if isinstance(model, TracedModel) else model
    with plainly():
        motions = LinkMotions.of(plain, rest(plain), numpy.zeros(plain.nv), 0.0)
    joints, weights = inverse.joints(), []  # type: Any, list[Any]
    for k, constraint in enumerate(constraints):
        tendons = _tendons(constraint)
        if tendons:
            weights.append(sum(_tendon_weight(inverse, tendon, motions) for tendon in tendons))
            continue
        with plainly():
            bodies, dofs = constraint.bodies(motions), constraint.joints(motions)
        own = [np.array(0.0)] * constraint.count(plain)
        centers = impedances[k].centers if impedances else ()
        turns = [not any(numpy.any(body.K[row, :3]) for body in bodies) for row in range(len(own))]
        for n, body in enumerate(bodies):
            given = centers[n] if n < len(centers) else ()
            weight = inverse.body(body.link, _in_link(inverse, body.link, given))
            own = [x + weight[int(turn)] for x, turn in zip(own, turns, strict=True)]
        for dof in dofs[:1] if isinstance(_innermost(constraint), RotationAngle) else dofs:
            own[dof.row] = own[dof.row] + joints[dof.v]
        weights += own
    return np.stack([np.array(x) for x in weights]) if weights else np.zeros(0)


def _in_link(inverse: InverseMass, link: int, center: tuple[float, ...]) -> tuple[float, ...]:
    """Convert a center of mass from the frame of a link's joint to the link's own frame."""
    if not center:
        return ()
    joint = next(j for j, (own, _) in enumerate(inverse.tree.bodies) if own == link)
    at = inverse.tree.place(joint, Placement.of(p=center))[1]
    return tuple(numpy.asarray(at.p, float).tolist())


def _tendons(constraint: Constraint) -> list[TendonLength]:
    """A constraint for each tendon of a tendon constraint."""
    of = _innermost(constraint)
    if not isinstance(of, TendonLength):
        return []
    return [TendonLength(name) for name in (of.tendon, of.tendon2) if name is not None]


def _innermost(constraint: Constraint) -> Constraint:
    """The constraint that a unilateral or selected row is derived from."""
    of = constraint
    while isinstance(of, UnilateralRow) or hasattr(of, "of"):
        of = of.of
    return of


def _tendon_weight(inverse: InverseMass, tendon: TendonLength, motions: LinkMotions) -> Any:
    J = numpy.zeros((1, inverse.model.nv))
    with plainly():
        for row in tendon.joints(motions):
            J[0, row.v] += row.factor
    return inverse.entries(np.array(J))[0]
