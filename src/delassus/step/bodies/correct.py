"""Position correction for many bodies, by sweeps; velocities are unchanged (see `stages.correction`)."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import scan, scan_first
from delassus.step.bodies.collide import Slots
from delassus.step.bodies.rows import SweepRows, push, read
from delassus.step.stages.collide import SLOP
from delassus.step.stages.correction import LEAN, SWEEPS, contact_demand


def correct_penetration(slots: Slots, contacts: SweepRows, deepest: Any, velocity: Any, time_step: Any) -> Any:
    """δ (bodies + 1, 6) [m, rad] in the world, which corrects a fraction of penetrations and closes no gap.

    `velocity` (bodies + 1, 6) is that at the end of the step, by which gaps may close. `deepest` is the smallest gap
    [m].
    """
    count, none = slots.count, np.zeros(velocity.shape)

    def correct() -> Any:
        def demanded(k: Any, item: SweepRows) -> tuple[Any, Any]:
            gap = np.take(slots.gap, k)
            return k + 1.0, contact_demand(gap, gap + time_step * read(item.rows, velocity)[2], time_step)

        _, demand = scan_first(count, demanded, np.array(0.0), contacts)

        def visit(carry: Any, item: SweepRows) -> tuple[Any, None]:
            shift, pushed, k = carry
            row, last, own = item.rows, np.take(pushed, k), 1.0 / item.rows.normal_step
            wanted = np.take(demand, k) - read(row, shift)[2] + own * last
            new = np.maximum(wanted / (own + LEAN * row.tangent_response), 0.0)
            change = np.where(k < count, new - last, 0.0)
            pushed = np.add_at(pushed, k, change)
            return (push(row, shift, np.stack([0.0, 0.0, change])), pushed, k + 1.0), None

        def sweep(carry: Any, _: Any) -> tuple[Any, None]:
            shift, pushed = carry
            (shift, pushed, _), _ = scan_first(count, visit, (shift, pushed, np.array(0.0)), contacts)
            return (shift, pushed), None

        (shift, _), _ = scan(sweep, (none, np.zeros(len(slots.gap))), length=SWEEPS)
        return shift

    return cond(deepest < -SLOP, correct, none)
