"""Bundled robots made of boxes, cylinders and spheres: `load("quadruped")`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Final

from delassus.model.bundled import arms, legged, linkages, parallel
from delassus.model.model import Model

BUNDLED: Final[dict[str, Callable[[], Model]]] = {
    "pendulum": linkages.pendulum,
    "double_pendulum": linkages.double_pendulum,
    "cart_pole": linkages.cart_pole,
    "slider_crank": linkages.slider_crank,
    "four_bar": linkages.four_bar,
    "five_bar": linkages.five_bar,
    "delta": parallel.delta,
    "stewart": parallel.stewart,
    "arm7": arms.arm7,
    "gripper": arms.gripper,
    "quadruped": legged.quadruped,
    "biped": legged.biped,
    "humanoid": legged.humanoid,
}
"""The robots by name."""


@cache
def bundled(name: str) -> Model:
    """Create a bundled robot."""
    return BUNDLED[name]()


def robots() -> dict[str, str]:
    """The names of the bundled robots for `load`, with descriptions.

    >>> "quadruped" in dl.robots()
    True
    """
    return {name: (inspect.getdoc(build) or "").partition("\n")[0] for name, build in BUNDLED.items()}
