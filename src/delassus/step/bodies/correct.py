"""Penetrations of many bodies corrected in a step, without any velocity: as `stages.correction` does, by sweeps."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan
from delassus.step.bodies.collide import Slots
from delassus.step.bodies.rows import ContactRows, push, read
from delassus.step.stages.collide import SLOP
from delassus.step.stages.correction import LEAN, SWEEPS, contact_demand


def correct_penetration(rows: ContactRows, slots: Slots, velocity: Any, time_step: Any) -> Any:
    """δ (bodies + 1, 6) [m, rad] in the world: it corrects a fraction of penetrations and closes no gap.

    `velocity` (bodies + 1, 6) is that of the step's end: gaps may close by it.
    """
    none = map_items(lambda x: 0.0 * x, velocity)

    def correct(velocity: Any) -> Any:
        def demanded(row: Any, gap: Any) -> Any:
            return contact_demand(gap, gap + time_step * read(ContactRows(*row), velocity)[2], time_step)

        demand = map_items(demanded, tuple(rows), slots.gap)

        def visit(shift: Any, item: Any) -> tuple[Any, Any]:
            row, demand, last = item
            own = 1.0 / row.normal_step
            wanted = demand - read(row, shift)[2] + own * last
            new = np.maximum(wanted / (own + LEAN * row.tangent_response), 0.0)
            return push(row, shift, np.stack([0.0 * new, 0.0 * new, new - last])), new

        def sweep(carry: Any, _: Any) -> tuple[Any, None]:
            return scan(visit, carry[0], (rows, demand, carry[1])), None

        (shift, _), _ = scan(sweep, (none, map_items(lambda x: 0.0 * x, demand)), length=SWEEPS)
        return shift

    deepest = np.min(map_items(lambda gap, active: np.where(active > 0.5, gap, 0.0), slots.gap, slots.active))
    return cond(deepest < -SLOP, correct, none, velocity)
