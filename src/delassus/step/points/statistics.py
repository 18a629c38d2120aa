"""Statistics of contacts over a control period: mean and peak of normal forces, and air time.

A state contains only the impulses of its last time step. For each tracked shape (`Scene.tracked`), the steps update
three values, at a few operations per slot:

    mean     (1/n) Σ f      over the n steps of the period [N]
    peak     max f          over the period [N]
    air      t - t_touch    since the last step with f > 0 [s]

where f is the sum of the normal forces of the contacts of a shape or body.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.common.names import UnknownName
from delassus.model.parts import WORLD
from delassus.step.scene import TALLIES, Scene

GROUND: Final = "ground"
"""The name of the ground in targets."""


def candidate_signs(scene: Scene, target: str) -> numpy.ndarray[Any, Any]:
    """Signs (candidates,): 1 if the target is the first body of a candidate, -1 if it is the second, else 0.

    The target "one|other" selects the contacts of one shape or body with another, or with "ground".
    """
    one, _, other = target.partition("|")
    signs = []
    for shape, partner, _ in scene.candidate_shapes:
        first, second = contact_names(scene, shape), contact_names(scene, partner)
        forward = one in first and (not other or other in second)
        backward = one in second and (not other or other in first)
        signs.append(float(forward) - float(backward))
    return numpy.array(signs)


def contact_names(scene: Scene, shape: Any) -> set[str]:
    """The names that select contacts of a shape: its own, and those of its joint, links and frames."""
    if shape is None:
        return {GROUND}
    joint = shape.geometry.joint
    if joint == WORLD:
        return {shape.geometry.name}
    model = scene.model
    frames = {frame.name for frame in model.frame_list if frame.joint == joint}
    return {shape.geometry.name, model.joints[joint].name, *frames}


def contact_targets(scene: Scene) -> list[str]:
    """All names that select contacts."""
    shapes = [one for shape, other, _ in scene.candidate_shapes for one in (shape, other)]
    return list(dict.fromkeys(name for shape in shapes for name in sorted(contact_names(scene, shape))))


def is_contact_target(scene: Scene, target: str) -> bool:
    """Whether a name, or a pair "one|other", selects a candidate for contact."""
    known = contact_targets(scene)
    one, bar, other = target.partition("|")
    return one in known and (not bar or other in known) and bool(candidate_signs(scene, target).any())


def expand_targets(scene: Scene, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The names of shapes and bodies that match the patterns."""
    result: list[str] = []
    shapes = [shape.geometry.name for shape, _, _ in scene.candidate_shapes]
    for pattern in patterns:
        matching = [name for name in dict.fromkeys(shapes) if fnmatchcase(name, pattern)]
        matching = matching or ([pattern] if is_contact_target(scene, pattern) else [])
        if not matching:
            raise UnknownName("shape or body to be tracked named", pattern, contact_targets(scene))
        result += matching
    return tuple(dict.fromkeys(result))


def normal_forces(scene: Scene, impulse: Any, contact: Any, time_step: Any) -> list[Any]:
    """The sum of normal forces [N] on each tracked shape or body in the last time step."""
    rows = scene.contact_rows
    normal = np.stack([impulse[rows * k + 2] for k in range(scene.full_slots)]) / time_step
    signs = (np.abs(candidate_signs(scene.full, target)) for target in scene.tracked)
    return [np.sum(np.take(sign, contact) * normal) for sign in signs]


def update_tally(scene: Scene, tally: Any, impulse: Any, contact: Any, time_step: Any) -> Any:
    """The tally (TALLIES · tracked,) after a step with these impulses and contacts, with Σ f in place of the mean."""
    updated = []
    for k, force in enumerate(normal_forces(scene, impulse, contact, time_step)):
        total, peak, air = (tally[TALLIES * k + i] for i in range(TALLIES))
        updated += [total + force, np.maximum(peak, force), np.where(force > 0.0, 0.0, air + time_step)]
    return np.stack(updated)


def begin_tally(scene: Scene, tally: Any) -> Any:
    """The tally at the beginning of a period: zero sums and peaks, and unchanged air times."""
    keep = numpy.tile([0.0, 0.0, 1.0], len(scene.tracked))
    return keep * tally


def end_tally(scene: Scene, tally: Any) -> Any:
    """The tally of a period, with means in place of sums."""
    return numpy.tile([1.0 / scene.substeps, 1.0, 1.0], len(scene.tracked)) * tally
