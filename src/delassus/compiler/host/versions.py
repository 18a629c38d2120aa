"""Decides which compiled versions of kernels stay in memory.

A kernel remembers what it was compiled for. All kernels together stay below a bound, and what was used longest ago goes
first. What goes is made again when it is needed, mostly from the disk cache. Machine code that somebody still holds, by
a ufunc or by bound arrays, stays until it is let go of.

A call of a model that was seen a moment ago must not cost anything, so it is not noted as a use. Instead, whatever is
compiled ends that short way for all kernels: the next call of each takes the long way once, where uses are noted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from delassus.compiler.backends.native import compiling, free_unused
from delassus.compiler.backends.target import Target
from delassus.compiler.host.build import Compiled
from delassus.compiler.host.known_calls import CallPlan

LIMIT: Final = 512 << 20
"""Bytes that compiled kernels may take together, unless somebody says otherwise."""

RECENT: Final = 256
"""Models that are found again by their identity, which spares hashing their content at every call."""


@dataclass
class _Version:
    compiled: Compiled
    used: int


class Versions:
    """The compiled versions of one kernel.

    Attributes:
        built: The versions by their keys, which hold all that was compiled for.
        recent: The short way: calls that are known, by the model's identity and whatever else was given.
    """

    def __init__(self) -> None:
        self.built: dict[Hashable, _Version] = {}
        self.recent: dict[Any, CallPlan] = {}

    def find(self, key: Hashable, make: Callable[[], Compiled]) -> Compiled:
        """The version for a key, which is made if there is none."""
        version = self.built.get(key)
        if version is None:
            with compiling:
                version = self.built.get(key)
                if version is None:
                    version = self.built[key] = _Version(make(), next(_clock))
                    _kernels.add(self)
                    _make_room()
        version.used = next(_clock)
        return version.compiled

    def of_program(self, digest: str, target: Target) -> Compiled | None:
        """The version with a program: another key led to the same one, whose function did not read what differs."""
        found = (version.compiled for version in self.built.values())
        return next((c for c in found if (c.program, c.target) == (digest, target)), None)

    def remember(self, key: Hashable, call: CallPlan) -> None:
        """Make a version known by the identity of its model."""
        if len(self.recent) >= RECENT:
            self.recent.clear()
        self.recent[key] = call

    def clear(self) -> None:
        """Let go of all versions."""
        self.built = {}
        self.recent.clear()


@dataclass
class _BoundVersion:
    bytes: int


_bound = _BoundVersion(LIMIT)
_clock = count(1)
_kernels: WeakSet[Versions] = WeakSet()
"""Those that have, or had, a version; changed and read only where `compiling` is held."""


def _make_room() -> None:
    """Let go of the versions that were used longest ago, until the rest is within the bound; the last one stays."""
    for kernel in _kernels:
        kernel.recent.clear()
    versions = [version for kernel in _kernels for version in kernel.built.values()]
    taken, oldest, counted = 0, 0, set[int]()
    for k, version in enumerate(sorted(versions, key=lambda version: -version.used)):
        taken += version.compiled.memory if id(version.compiled) not in counted else 0
        counted.add(id(version.compiled))
        if k and taken > _bound.bytes:
            break
        oldest = version.used
    for kernel in _kernels:
        if any(version.used < oldest for version in kernel.built.values()):
            # Not by deleting keys: a model that changed meanwhile is not found by its key any more.
            kernel.built = {key: version for key, version in kernel.built.items() if version.used >= oldest}


def kernel_memory(limit: int | None = None) -> int:
    """How many bytes compiled kernels may take in memory, about; with `limit`, set it first.

    At the start it is 512 MiB. Versions of kernels that were used longest ago are let go of beyond it, and are made
    again when they are called.

    >>> dl.compiler.kernel_memory() > 0
    True
    """
    if limit is not None:
        if not isinstance(limit, (int, np.integer)) or isinstance(limit, bool) or limit < 0:
            raise ValueError(f"the memory of kernels is a number of bytes, 0 or more, not {limit!r}.")
        with compiling:
            _bound.bytes = int(limit)
            _make_room()
    return _bound.bytes


def clear_kernels() -> None:
    """Let go of all compiled kernels; each is made again when it is called.

    Ufuncs and bound arrays that somebody holds stay valid.

    >>> dl.compiler.clear_kernels()
    """
    with compiling:
        for kernel in _kernels:
            kernel.clear()
        free_unused()
