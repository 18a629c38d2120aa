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
        excess: () energy [J] that contacts have added and may not.
        grounded: () whether the world exerts impulses on it.
        alone: () whether it may be rotated as a whole to correct its energy: no other body touches it, and its joint
            limits and contacts remain as they are.
        flies: () whether nothing touches it, and no joint is at a limit.
    """

    excess: Any
    grounded: Any
    alone: Any = False
    flies: Any = False


def is_articulated(part: Component) -> bool:
    """Whether the energy of a part is restored here."""
    return not (part.rigid or part.driven)


def shared_excess(parts: Sequence[Component], push: Any, after: Any, meeting: Sequence[Any]) -> list[Any]:
    """The energy [J] that contacts have added to each part, which they may not.

    `push` (nv,) are the generalized contact impulses, `after` (nv,) the velocity after them, and `meeting` velocities
    (nv,) at which contacts may have met, such as before and after other forces have acted; the smallest energy counts.
    """
    every = [contact_excess(parts, push, before + after) for before in meeting]
    least = every[0]
    for other in every[1:]:
        least = [np.minimum(one, another) for one, another in zip(least, other, strict=True)]
    return least


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
