"""The wrench of a constraint on the body of its first frame, in any axes."""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.common.names import UnknownName
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constraints.basis.constraint import Constraint, ConstraintError
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.dynamics.tree.poses import Pair, fixed_pose
from delassus.model.parts import WORLD

OWN: Final = "frame"
"""The axes of the constraint's own first frame."""


@kernel("(nq),(m)->(6)", inputs={"time": "()"})
def constraint_wrench(
    mechanism: Mechanism, q: Any, force: Any, *, constraint: str, axes: str = "world", time: Any = None
) -> Floats:
    """Force and moment (6,) [N, N·m] of one constraint on the body of its first frame, about the origin of that frame.

    `force` (m,) are the forces of all rows, `constraint` is a name, `axes` is "world", "frame" for the constraint's own
    first frame, or the name of a frame.
    """
    held, rows = _find_constraint(mechanism, constraint)
    motions = LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
    attached = held.attachment(mechanism.model)
    if attached is None:
        raise ConstraintError(
            f"the constraint {constraint!r} acts on joints, not at a frame; use forces[{constraint!r}].",
            code="not-supported",
        )
    first, placement = attached
    R, p = fixed_pose(placement).compose(*motions.in_world(first))
    force_sum, moment = np.zeros(3), np.zeros(3)
    # A constraint on the world has the opposite wrench of the one on the bodies.
    bodies = [(body, 1.0 if first != WORLD else -1.0) for body in held.bodies(motions) if first in (body.link, WORLD)]
    for body, sign in bodies:
        R_body, p_body = motions.in_world(body.link)
        body_force, body_moment = _rotate_wrench(R_body, sign * (body.K.T @ force[rows]))
        force_sum, moment = force_sum + body_force, moment + body_moment + np.cross(p_body - p, body_force)
    if axes != "world":
        R = R if axes == OWN else frame_in_world(mechanism.model, q, axes)[0]
        force_sum, moment = R.T @ force_sum, R.T @ moment
    return np.concatenate([force_sum, moment])


def _rotate_wrench(R: Any, wrench: Any) -> Pair:
    return R @ wrench[:3], R @ wrench[3:]


def _find_constraint(mechanism: Mechanism, name: str) -> tuple[Constraint, slice]:
    if name not in mechanism.names:
        raise UnknownName("constraint", name, mechanism.names, code="unknown-constraint")
    return mechanism.constraints[mechanism.names.index(name)], mechanism.slices[name]
