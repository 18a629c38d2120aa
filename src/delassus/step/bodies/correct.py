"""Position correction for many bodies, by sweeps; velocities are unchanged (see `stages.correction`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import scan, scan_first
from delassus.step.bodies.rows import RowGroup, SweepRows, combine, push, read
from delassus.step.stages.collide import SLOP
from delassus.step.stages.correction import LEAN, SWEEPS


def correct_penetration(groups: Sequence[RowGroup], deepest: Any, velocity: Any, time_step: Any) -> Any:
    """Displacements δ, as velocities are: (bodies + 1, 6) [m, rad] in the world, which correct a fraction of
    penetrations and close no gap.

    `velocity` is that at the end of the step, by which gaps may close. `deepest` is the smallest gap [m].
    """
    none = combine(lambda v: np.zeros(v.shape), velocity)

    def correct() -> Any:
        demands = []
        for group in groups:
            rows = group.items.rows
            part = rows.part_of(velocity)

            def demanded(k: Any, item: SweepRows, group: RowGroup = group, part: Any = part) -> tuple[Any, Any]:
                gap = np.take(group.gap, k)
                return k + 1.0, item.rows.demand(gap, gap + time_step * read(item.rows, part)[-1], time_step)

            demands.append(scan_first(group.count, demanded, np.array(0.0), group.items)[1])

        def sweep(carry: Any, _: Any) -> tuple[Any, None]:
            shift, pushed = carry[0], []
            for group, demand, old in zip(groups, demands, carry[1], strict=True):

                def visit(
                    carry: Any, item: SweepRows, group: RowGroup = group, demand: Any = demand
                ) -> tuple[Any, None]:
                    shift, pushed, k = carry
                    row, last, own = item.rows, np.take(pushed, k), 1.0 / item.rows.normal_step
                    wanted = np.take(demand, k) - read(row, shift)[-1] + own * last
                    new = np.maximum(wanted / (own + LEAN * row.tangent_response), 0.0)
                    change = np.where(k < group.count, new - last, 0.0)
                    pushed = np.add_at(pushed, k, change)
                    return (push(row, shift, row.along_normal(change)), pushed, k + 1.0), None

                rows = group.items.rows
                start = (rows.part_of(shift), old, np.array(0.0))
                (part, new, _), _ = scan_first(group.count, visit, start, group.items)
                shift = rows.with_part(shift, part)
                pushed.append(new)
            return (shift, tuple(pushed)), None

        impulses = tuple(np.zeros(len(group.gap)) for group in groups)
        (shift, _), _ = scan(sweep, (none, impulses), length=SWEEPS)
        return shift

    return cond(deepest < -SLOP, correct, none)
