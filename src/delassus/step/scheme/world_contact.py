"""Parts of a scene that exchange impulses with the world, so that their momentum is not conserved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import delassus.numpy as np
from delassus.model.links import Links
from delassus.step.scene import Scene
from delassus.step.scheme.components import Component


def is_grounded(scene: Scene, tree: Links, part: Component, impulse: Any, touches: Sequence[bool] | Any) -> Any:
    """Whether the world exerts impulses on a part, for impulses (m,) of all rows.

    `touches` (contacts,) says which contacts are between the part and the world: a list known when a kernel is
    compiled, or an array for each state.
    """
    pulled = _is_pulled(scene, tree, part, impulse)
    if isinstance(touches, Sequence):
        rows = [row for row, touch in zip(scene.normals, touches, strict=True) if touch]
        return pulled | np.any(impulse[rows] > 0.0) if rows else pulled
    return pulled | np.any((impulse[list(scene.normals)] > 0.0) & touches)


def is_alone(scene: Scene, parts: Sequence[Component], impulse: Any) -> Any:
    """Whether no part exerts impulses on another one, for impulses (m,) of all rows."""
    rows = [*scene.normals, *scene.stop_rows[: len(scene.one_sided)]]
    if len(parts) == 1 or not rows:
        return np.array(True)
    return ~np.any(impulse[rows] > 0.0)


def _is_pulled(scene: Scene, tree: Links, part: Component, impulse: Any) -> Any:
    """Whether a one-sided constraint between a part and the world has an impulse."""
    result = np.array(False)
    for row, stop in zip(scene.stop_rows, scene.one_sided, strict=False):
        links = stop.links(scene.model)
        if links and not stop.relative(scene.model) and any(tree.path(k)[0] in part.roots for k in links):
            result = result | (impulse[row] > 0.0)
    return result
