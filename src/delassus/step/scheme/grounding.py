"""One-sided constraints as parts of a robot's motion: which of them tie it to the world."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.model.links import Links
from delassus.step.scene import Scene
from delassus.step.scheme.components import Component


def is_pulled_by_world(scene: Scene, tree: Links, part: Component, impulse: Any) -> Any:
    """Whether a one-sided constraint between a part and the world has an impulse, of impulses (m,) of all rows."""
    result = np.array(False)
    for row, stop in zip(scene.stop_rows, scene.one_sided, strict=False):
        links = stop.links(scene.model)
        if links and not stop.relative(scene.model) and any(tree.path(k)[0] in part.roots for k in links):
            result = result | (impulse[row] > 0.0)
    return result
