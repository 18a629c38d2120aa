"""All rows of a step: their Jacobian, and the gaps of those that only push."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import velocities_asked
from delassus.constraints.basis.motions import LinkMotions
from delassus.dynamics.tree.poses import Pair
from delassus.simulation.step.contacts import GroundShape, Touching, touching
from delassus.simulation.step.sharing import Sharing
from delassus.simulation.step.world import World

_NOTHING: Final = 1e-9
"""Rows of constraints that are as small against others do not move."""

SLOP: Final = 1e-9
"""Penetrations [m, rad] beyond are taken back."""


class StepRows(NamedTuple):
    """J (motions, nv), what rows have of the motions, None if they are the same, contacts, gaps of limits (ends,),
    velocities (loops,) that constraints ask for and whether they move anything, too many limits."""

    J: Any
    sharing: Sharing | None
    touching: Touching
    stop_gap: Any
    asked: Any
    moves: Any
    more_stops: Any

    def velocities(self, v: Any) -> Any:
        """Of rows (m,), of velocities (nv,)."""
        return self.J @ v if self.sharing is None else self.sharing.P @ (self.J @ v)

    def motions(self, impulse: Any) -> Any:
        """What impulses (m,) do to the motions (motions,)."""
        return impulse if self.sharing is None else self.sharing.P.T @ impulse

    def response(self, S: Any, some: list[int] | slice = slice(None)) -> Any:
        """G (some, some) of the response S (motions, motions) of motions."""
        if self.sharing is None:
            return S[some][:, some]
        P = self.sharing.P[some]
        return P @ S @ P.T


def step_rows(world: World, q: Any, v: Any, poses: list[Pair], ground: GroundShape, h: Any, time: Any) -> StepRows:
    """The rows in a configuration, at the time of the step's end."""
    found = touching(world, q, poses, ground, h)
    stops, stop_gap, more = _stops(world, q, v, h)
    loops, asked, moves = np.zeros((0, world.nv)), np.zeros(0), np.zeros(0)
    if world.mechanism.m:
        loops = constraint_jacobian.function(world.mechanism, q, time=time)
        asked = velocities_asked(world.mechanism, q, time)
        # A row across the plane of a linkage is zero but for rounding, which would be held by enormous impulses.
        sizes = np.max(np.abs(loops), axis=1)
        moves = sizes > _NOTHING * np.max(sizes)
        loops, asked = np.where(moves[:, None], loops, 0.0), np.where(moves, asked, 0.0)
    dry = np.zeros((len(world.dry), world.nv))
    for k, (i, _) in enumerate(world.dry):
        dry[k, i] = 1.0
    J = np.concatenate([found.J, loops, stops, dry])
    sharing = found.sharing and found.sharing.with_others(len(J) - len(found.J))
    return StepRows(J, sharing, found, stop_gap, asked, moves, more)


def missed(world: World, q: Any, v: Any, h: Any, found: Touching) -> Any:
    """Whether a contact or a joint limit that has been left out would be passed in a step h with the velocity v (nv,).

    If none is, the impulses of a world without them are those of the whole one: theirs are zero.
    """
    rates = found.left_out(v)
    if world.usual is not None and world.stops:
        motions = LinkMotions.of(world.model, q, np.zeros(world.nv))
        for stop in world.stops:
            row = stop.joints(motions)[0]
            rates.append((stop.gap(motions), row.factor * v[row.v]))
    if not rates:
        return np.array(False)
    return np.min(np.stack([np.array(gap + h * np.minimum(rate, 0.0)) for gap, rate in rates])) < -SLOP


def pushed_elsewhere(world: World, impulse: Any, contact: Any) -> Any:
    """Whether a contact or a joint limit that this world leaves out had an impulse in the step before (…).

    Then it is likely to have one again. Impulses (…, rows) and contacts (…, slots) are those of the whole world.
    """
    count, own = world.contact_rows, [float(number) for number in world.usual or ()]
    start = count * world.all_slots + world.mechanism.m
    found: Any = np.zeros(np.shape(impulse)[:-1]) > 0.0
    for k in range(start, start + world.whole.ends):
        found = found | (impulse[..., k] > 0.0)
    for slot in range(world.all_slots):
        usual: Any = np.zeros(np.shape(impulse)[:-1]) > 0.0
        for number in own:
            usual = usual | (contact[..., slot] == number)
        found = found | ((impulse[..., count * slot + 2] > 0.0) & ~usual)
    return found


def _stops(world: World, q: Any, v: Any, h: Any) -> tuple[Any, Any, Any]:
    """Rows (ends, nv) of the limits that are nearest at the end of the step, their gaps, and whether there are more."""
    none = np.zeros((world.ends, world.nv))
    if not world.ends:
        return none, np.zeros(0), np.array(False)
    motions = LinkMotions.of(world.model, q, np.zeros(world.nv))
    rows = [stop.joints(motions)[0] for stop in world.stops]
    gap = np.stack([np.array(stop.gap(motions)) for stop in world.stops])
    factor = np.stack([np.array(row.factor) for row in rows])
    places = numpy.array([float(row.v) for row in rows])
    J = none
    if world.ends == len(rows):
        for k, row in enumerate(rows):
            J[k, row.v] = factor[k]
        return J, gap, np.array(False)
    ahead = gap + h * factor * v[[row.v for row in rows]]
    nearest = np.argsort(ahead)
    more = np.take(ahead, nearest[world.ends]) < 0.0
    chosen = np.sort(nearest[: world.ends])
    factor, gap, place = np.take(factor, chosen), np.take(gap, chosen), np.take(places, chosen)
    for i in sorted({row.v for row in rows}):
        J[:, i] = np.where(place == float(i), factor, 0.0)
    return J, gap, more
