"""Springs and dampers of tendons over joints: lengths that are sums of coordinates, as in MJCF's `fixed` tendons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.errors import DelassusError
from delassus.model.model import Model
from delassus.model.transmission import Tendon


class Pull(NamedTuple):
    """A tendon in a state.

    Attributes:
        row: (nv,) its rate per velocity.
        rate: The rate of its length [m/s].
        stiffness: [N/m], zero between the lengths at which it rests.
        damping: [N·s/m].
        force: Of its spring and damper, along its length [N].
    """

    row: NDArray[numpy.float64]
    rate: Any
    stiffness: Any
    damping: float
    force: Any


def tendons_of(model: Model, q: Any, v: Any) -> Iterator[Pull]:
    """Those with a spring or a damper."""
    for tendon in model.tendons:
        if tendon.stiffness or tendon.damping:
            yield _pull(model, tendon, q, v)


def check_tendons(model: Model) -> None:
    """Raise if a spring or damper is on a string through sites, whose length is no sum of coordinates."""
    for tendon in model.tendons:
        if (tendon.stiffness or tendon.damping) and not tendon.terms:
            raise DelassusError(
                f"the tendon {tendon.name!r} is a string through sites, with a spring or a damper; a step knows only "
                "tendons over joints. Take dl.Distance or dl.Implicit with a compliance instead, and "
                "dataclasses.replace(model, tendons=()) for the robot."
            )


def _pull(model: Model, tendon: Tendon, q: Any, v: Any) -> Pull:
    row, length = numpy.zeros(model.nv), np.array(0.0)
    for name, factor in tendon.terms:
        joint, k = model.joint(name), model.joint_index(name)
        ratio, offset = (joint.mimic.ratio, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        row[model.v_starts[k]] += factor * ratio
        length = length + factor * (ratio * q[model.q_starts[k]] + offset)
    rate, stiffness, stretch = row @ v, np.array(tendon.stiffness), 0.0
    if tendon.stiffness:
        shortest, longest = tendon.rest
        stretch = length - np.clip(length, shortest, longest)
        if shortest < longest:
            stiffness = np.where(stretch != 0.0, stiffness, 0.0)
    return Pull(row, rate, stiffness, tendon.damping, -tendon.stiffness * stretch - tendon.damping * rate)
