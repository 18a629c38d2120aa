"""Robots beside free bodies, before their contacts are known: kinematics, forces, and the response to impulses.

With M̂ of `stages.assemble` and the rows J_b of bilateral constraints,

    W = M̂⁻¹ - M̂⁻¹ J_bᵀ G⁻¹ J_b M̂⁻¹,      G = J_b M̂⁻¹ J_bᵀ

is the response of velocities to impulses of all other rows: constraints are eliminated, and J_b W = 0. W (nv, nv) is
written out, so that a contact of any link has its response J W in a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import substitute
from delassus.geometry.point_jacobians import PointJacobians
from delassus.linalg.ldl import Ldl, ldl_regularized
from delassus.step.actuators.forces import Forces
from delassus.step.scene import Scene
from delassus.step.scheme.components import Component, components
from delassus.step.scheme.energy import gravity_forces
from delassus.step.scheme.manifold_step import turning, without_flight
from delassus.step.stages.collide import Candidates, Contacts
from delassus.step.stages.kinematics import Kinematics, compute_kinematics
from delassus.step.stages.rows import ConstraintRows, constraint_rows
from delassus.step.stages.types import StepState

_REDUNDANT: Final = 1e-9
"""Relative regularization of the response of bilateral rows, which may be redundant."""


class Robots(NamedTuple):
    """Robots at the beginning of a step.

    Attributes:
        scene: The robots without contacts.
        state: Their state.
        kinematics: Poses of links.
        reach: Jacobians of links.
        forces: Forces of actuators, springs and dampers.
        rows: Rows of constraints, limits and joint friction.
        inertia: (nv, nv) M.
        inverse: (nv, nv) M̂⁻¹.
        W: (nv, nv) the response.
        loops: Factors of G; None without bilateral constraints.
        weight: (nv,) gravity forces.
        kick: (nv,) the velocity change due to all forces except velocity products.
        parts: Independently moving parts.
        time_step: h [s].
    """

    scene: Scene
    state: StepState
    kinematics: Kinematics
    reach: PointJacobians
    forces: Forces
    rows: ConstraintRows
    inertia: Any
    inverse: Any
    W: Any
    loops: Ldl | None
    weight: Any
    kick: Any
    parts: tuple[Component, ...]
    time_step: Any

    @property
    def bilateral(self) -> Any:
        """(bilateral, nv) rows of constraints."""
        return self.rows.J[: self.scene.mechanism.m]

    @property
    def others(self) -> Any:
        """(rows, nv) rows of one-sided constraints, joint limits and joint friction."""
        return self.rows.J[self.scene.mechanism.m :]

    def solve(self, force: Any) -> Any:
        """M̂⁻¹ f (nv,)."""
        return self.inverse @ force

    def respond(self, impulse: Any) -> Any:
        """M̂⁻¹ Jᵀ λ (nv,) of impulses (m,) of the rows."""
        return self.inverse @ self.rows.joint_impulses(impulse)

    def delassus_of(self, rows: Sequence[int]) -> Any:
        """J M̂⁻¹ Jᵀ of some rows."""
        J = self.rows.J[list(rows)]
        return J @ self.inverse @ J.T

    def free_velocity(self, middle: Any) -> tuple[Any, Any]:
        """Velocities (nv,) with bilateral constraints only, and h c (nv,), the impulse of velocity products at the
        velocity `middle` (nv,) of the middle of the step."""
        model = self.scene.model
        moving = without_flight(self.parts, middle)
        acting = self.forces.force - newton_euler(model, self.state.q, moving, turning(model, moving), None)
        free = self.state.v + self.time_step * (self.inverse @ acting)
        if self.loops is not None:
            free = free + self.inverse @ (self.bilateral.T @ self.closing_impulses(free))
        return free, self.time_step * (self.forces.force + self.weight - acting)

    def closing_impulses(self, v: Any) -> Any:
        """Impulses (bilateral,) that change velocities (nv,) to those of the constraints."""
        if self.loops is None:
            return np.zeros(0)
        return self.loops.solve(self.rows.target - self.bilateral @ v)


def robots_at(scene: Scene, state: StepState, forces: Forces, time_step: Any) -> Robots:
    """Robots in a state, with the forces of a step.

    Args:
        scene: The robots without contacts, see `robots.robot_scene`.
        state: Their state.
        forces: Forces of actuators, springs and dampers.
        time_step: h [s].
    """
    model, q = scene.model, state.q
    kinematics = compute_kinematics(scene, q)
    reach = PointJacobians.of(kinematics.tree, scene.nv, kinematics.poses, True)
    rows = constraint_rows(scene, state, kinematics, no_contacts(), time_step)
    factor = tree_factor(model, q, np.zeros((0, scene.nv)), added=forces.added, rank_ones=forces.rank_ones)
    inverse = map_items(lambda e: substitute(factor.above, factor.U, factor.D, e), np.eye(scene.nv))
    W, loops, count = inverse, None, scene.mechanism.m
    if count:
        J = rows.J[:count]
        X = inverse @ J.T
        loops = ldl_regularized(J @ X, _REDUNDANT)
        factors = loops
        W = inverse - map_items(lambda x: X @ factors.solve(x), X)
    parts, M = components(scene.mechanism, q), mass_matrix(model, q)
    weight = gravity_forces(model, q, M, parts)
    kick = time_step * (W @ (forces.force + weight))
    return Robots(scene, state, kinematics, reach, forces, rows, M, inverse, W, loops, weight, kick, parts, time_step)


def no_contacts() -> Contacts:
    """The contacts of a scene that has none."""
    none, nowhere = np.zeros(0), np.zeros((0, 3))
    candidates = Candidates(none, nowhere, nowhere, none, np.array(False))
    return Contacts(none, none, nowhere, [], None, [], [], np.array(False), candidates)
