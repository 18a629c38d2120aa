"""Restores energy and momentum of all articulated parts after a step.

See `energy` for the equations. The flight of free bodies conserves both, and parts that constraints move in time are
not conservative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import delassus.numpy as np
from delassus.model.model import Model
from delassus.step.scheme.components import Component
from delassus.step.scheme.energy import Allowance, Kick, allowance_of, contact_excess, restore

Allowances: TypeAlias = list[tuple[Component, Allowance]]
"""The allowed energy and momentum of each articulated part."""


class PartContact(NamedTuple):
    """Effect of contacts on a part in a step.

    Attributes:
        excess: () energy [J] added by contacts, which is to be removed.
        grounded: () whether the world exerts impulses on it.
        alone: () whether it may be rotated as a whole to correct its energy: no other body touches it, and its joint
            limits and contacts remain as they are.
        flies: () whether it has no contact, and no joint is at a limit.
    """

    excess: Any
    grounded: Any
    alone: Any = False
    flies: Any = False


def is_articulated(part: Component) -> bool:
    """Whether the energy of a part is restored: it is neither a free body nor driven by a constraint."""
    return not (part.rigid or part.driven)


def shared_excess(parts: Sequence[Component], impulse: Any, v_end: Any, v_starts: Sequence[Any]) -> list[Any]:
    """The energy [J] to remove from each part, since contacts have added it.

    `impulse` (nv,) are the generalized contact impulses and `v_end` (nv,) the velocity after them. `v_starts` are
    candidates for the velocity (nv,) before them, such as those before and after other forces; the result is the
    minimum over the candidates.
    """
    candidates = [contact_excess(parts, impulse, v_start + v_end) for v_start in v_starts]
    smallest = candidates[0]
    for candidate in candidates[1:]:
        smallest = [np.minimum(one, other) for one, other in zip(smallest, candidate, strict=True)]
    return smallest


def part_allowances(
    model: Model,
    q: Any,
    inertia: Any,
    kick: Kick,
    parts: Sequence[Component],
    contacts: Sequence[PartContact],
    time_step: Any,
    middle: Any = None,
) -> Allowances:
    """The allowed energy and momentum of articulated parts after a step from q (nq,), with M (nv, nv) at q.

    `contacts` has the contact effect on each articulated part; `middle` is as for `allowance_of`.
    """
    result = []
    for part, contact in zip(filter(is_articulated, parts), contacts, strict=True):
        allowance = allowance_of(model, q, inertia, kick, part, contact.excess, contact.flies, middle)
        angle = np.where(contact.alone, time_step * allowance.angle, 0.0)
        result.append((part, allowance._replace(angle=angle, grounded=contact.grounded)))
    return result


def restore_parts(model: Model, q: Any, v: Any, allowances: Allowances) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) at the end of a step, corrected to the allowed energy and momentum."""
    for part, allowance in allowances:
        q, v = restore(model, q, v, part, allowance)
    return q, v
