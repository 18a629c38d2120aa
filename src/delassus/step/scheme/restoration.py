"""Restores energy and momentum of all articulated parts after a step.

See `energy` for the equations. Free bodies have theirs in their flight, and parts that constraints move in time have
none to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import delassus.numpy as np
from delassus.model.model import Model
from delassus.step.scheme.components import Component
from delassus.step.scheme.energy import Allowance, Kick, allowance_of, contact_excess, restore

Allowances: TypeAlias = list[tuple[Component, Allowance]]
"""Of each articulated part, the energy and momentum that it may have."""


class PartContact(NamedTuple):
    """Effect of contacts on a part in a step.

    Attributes:
        excess: () energy [J] that they have added and may not.
        grounded: () whether the world pushes or pulls it.
        alone: () whether it may be turned as a whole to make up for its energy: no other body touches it, and its joint
            limits and its own contacts stay as they are.
        flies: () whether nothing touches it, and no joint is at a limit.
    """

    excess: Any
    grounded: Any
    alone: Any = False
    flies: Any = False


def is_articulated(part: Component) -> bool:
    """Whether the energy of a part is kept here."""
    return not (part.rigid or part.driven)


def shared_excess(parts: Sequence[Component], push: Any, after: Any, meeting: Sequence[Any]) -> list[Any]:
    """Of each part, the energy [J] that contacts have added and may not.

    `push` (nv,) are their impulses at the velocities, `after` (nv,) the velocity that they lead to, `meeting` those
    (nv,) at which contacts may have met, such as before and after forces have acted: the least energy counts.
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
    """The energy and momentum that articulated parts may have after a step from q (nq,), with M (nv, nv) there.

    `contacts` says of each articulated part what touched it, `middle` as for `allowance_of`.
    """
    result = []
    for part, contact in zip(filter(is_articulated, parts), contacts, strict=True):
        allowance = allowance_of(model, q, inertia, kick, part, contact.excess, contact.flies, middle)
        angle = np.where(contact.alone, time_step * allowance.angle, 0.0)
        result.append((part, allowance._replace(angle=angle, grounded=contact.grounded)))
    return result


def restore_parts(model: Model, q: Any, v: Any, allowances: Allowances) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) at the end of a step, with the energy and momentum that are allowed."""
    for part, allowance in allowances:
        q, v = restore(model, q, v, part, allowance)
    return q, v
