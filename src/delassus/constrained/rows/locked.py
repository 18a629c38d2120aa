"""Selection of joints that stay fixed, by names or patterns."""

from __future__ import annotations

from collections.abc import Iterable

from delassus.common.names import find_by_pattern
from delassus.errors import expect
from delassus.model.model import Model


def locked_velocities(model: Model, patterns: Iterable[str]) -> tuple[int, ...]:
    """The indices of the velocities of joints given by names or patterns, each of which must match a joint."""
    result: set[int] = set()
    expect("locked", patterns, Iterable, '["arm*"]')
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        expect("the name of a joint", pattern, str, '"arm*"')
        for joint in find_by_pattern("joint", pattern, model.joints, code="unknown-joint"):
            k = model.joint_index(joint.name)
            result.update(range(model.v_starts[k], model.v_starts[k] + joint.kind.nv))
    return tuple(sorted(result))


def locked_coordinates(model: Model, locked: tuple[int, ...]) -> tuple[int, ...]:
    """The indices of the coordinates of joints all of whose velocities (by index) are locked."""
    result: set[int] = set()
    for k, joint in enumerate(model.joints):
        if set(range(model.v_starts[k], model.v_starts[k] + joint.kind.nv)) <= set(locked):
            result.update(range(model.q_starts[k], model.q_starts[k] + joint.kind.nq))
    return tuple(sorted(result))
