"""The Jacobian of all constraints of a mechanism, and their velocity products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import Rows, right_hand_side, row_values, rows_in
from delassus.dynamics.tree.poses import ShiftStep
from delassus.model.parts import WORLD

if TYPE_CHECKING:
    from delassus.constrained.rows.problem import Problem


@kernel("(nq)->(m,nv)", inputs={"time": "()"})
def constraint_jacobian(mechanism: Mechanism, q: Traced, *, time: Traced = None) -> Floats:
    """J (m, nv), with row velocities J v. `time` [s] is for user-written constraints that depend on it.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.constraint_jacobian(loop, loop.model.posture("home")).shape
    (3, 3)
    """
    motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
    return jacobian_in(rows_in(mechanism, motions), motions)


@kernel("(nq),(nv)->(m)", inputs={"time": "()"})
def constraint_bias(mechanism: Mechanism, q: Traced, v: Traced, *, time: Traced = None) -> Floats:
    """γ (m,) of the constraint equation J a + γ = 0, including references, gains and target accelerations.

    `time` [s] is that of moving references (input at run time), required if there are any.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> dl.constrained.constraint_bias(loop, loop.model.posture("home"), np.ones(3)).shape
    (3,)
    """
    motions = LinkMotions.of(mechanism.model, q, v, time)
    rows = rows_in(mechanism, motions)
    return _bias(rows, motions, right_hand_side(mechanism, rows, motions))


def jacobian_of(problem: Problem) -> Any:
    """J of a problem, with zeros for inactive rows."""
    return problem.active(jacobian_in(problem.rows, problem.motions))


def bias_of(problem: Problem) -> Any:
    """γ of a problem, with zeros for inactive rows."""
    return problem.active(_bias(problem.rows, problem.motions, problem.k))


def link_values(rows: Rows, motions: LinkMotions, a: Any) -> Any:
    """K times the links' accelerations (m,) for joint accelerations a (nv,): J a + γ without the term -k of the
    rows.
    """
    return row_values(rows, {link: motions.acceleration(link, a) for link in rows.links}, a)


def _bias(rows: Rows, motions: LinkMotions, k: Any) -> Any:
    return link_values(rows, motions, np.zeros(motions.model.nv)) - k


def jacobian_in(rows: Rows, motions: LinkMotions) -> Any:
    """J (m, nv) of rows at a state."""
    J = np.zeros((rows.m, motions.model.nv))
    for link, link_rows in rows.links.items():
        for i, v, lin, ang in _columns(motions, link):
            # A link that carries all bodies of a relative row does not move it: these zeros are known at compile
            # time.
            moving = [j for j, row in enumerate(link_rows.rows) if not _carries(motions, rows, i, row)]
            if not moving:
                continue
            column = link_rows.K[moving, :3] @ lin + link_rows.K[moving, 3:] @ ang
            for x, row in zip(column, (link_rows.rows[j] for j in moving), strict=True):
                J[row, v] = J[row, v] + x
    for dof in rows.dofs:
        J[dof.row, dof.v] = J[dof.row, dof.v] + dof.factor
    return J


def _carries(motions: LinkMotions, rows: Rows, link: int, row: int) -> bool:
    """Whether a link carries all bodies of a row that does not depend on their common motion."""
    root = rows.layout.roots[row]
    return row in rows.layout.inner and root != WORLD and link in motions.tree.path(root)


def _columns(motions: LinkMotions, link: int) -> list[tuple[int, int, Any, Any]]:
    """For each velocity that moves a link: its link, its index, and the unit motion in the link's axes.

    Inward from the link, its axes and its origin are expressed in the frame of each carrier: four vectors, independent
    of the number of rows.
    """
    result = []
    axes, origin = [np.eye(3)[k] for k in range(3)], np.zeros(3)
    for i in reversed(motions.tree.path(link)):
        carrier = motions.tree.links[i]
        S_lin, S_ang = carrier.subspace
        turn = np.stack(axes)
        for k in range(carrier.motion.nv):
            lin, ang = turn @ (S_lin[:, k] + np.cross(S_ang[:, k], origin)), turn @ S_ang[:, k]
            result.append((i, carrier.v + k, carrier.ratio * lin, carrier.ratio * ang))
        for step in motions.poses[i].steps:
            if isinstance(step, ShiftStep):
                origin = origin + step.p
            else:
                origin, _ = step.motion_to_parent(origin, np.zeros(3))
                axes = [step.motion_to_parent(axis, np.zeros(3))[0] for axis in axes]
    return result
