"""Friction coefficients of each contact point, in the order of its rows."""

from __future__ import annotations

from typing import Any

from delassus.step.scene import Scene


def coefficients_of(scene: Scene, friction: Any, torsional: Any, rolling: Any) -> list[tuple[range, list[Any]]]:
    """For each point its rows, and the coefficients of all rows but the normal, in the order t1, t2, spin, roll1,
    roll2."""
    result, spins, rolls = [], 0, 0
    for k, own in enumerate(scene.layout.friction):
        others = [friction[k], friction[k]]
        if len(own) > 3:
            others.append(torsional[spins])
            spins += 1
        if len(own) > 4:
            others += [rolling[rolls]] * 2
            rolls += 1
        result.append((own, others))
    return result
