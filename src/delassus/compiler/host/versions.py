"""Decides which compiled versions of kernels stay in memory.

A kernel caches its compiled versions. All versions together stay below a limit; the least recently used ones are
dropped, and built again when they are needed, mostly from the disk cache. Machine code held by a ufunc or a bound
kernel stays until its owner is freed.

Repeated calls of a model must be fast, so they are not recorded as uses. Instead, each compilation ends the fast path
of all kernels once: the next call of each takes the slow path, which records its use.
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
"""Default limit of the memory of compiled kernels [bytes]."""

RECENT: Final = 256
"""Number of models that are recognized by identity, which avoids hashing their content in every call."""


@dataclass
class _Version:
    compiled: Compiled
    used: int


class Versions:
    """The compiled versions of one kernel.

    Attributes:
        built: Versions by key.
        recent: Fast path: plans of calls, by the identity of the model and the form of the other arguments.
    """

    def __init__(self) -> None:
        self.built: dict[Hashable, _Version] = {}
        self.recent: dict[Any, CallPlan] = {}

    def find(self, key: Hashable, make: Callable[[], Compiled]) -> Compiled:
        """The version for a key, created if needed."""
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
        """The version with the same program; its key differs only in data that the function does not read."""
        versions = (version.compiled for version in self.built.values())
        return next((c for c in versions if (c.program, c.target) == (digest, target)), None)

    def remember(self, key: Hashable, call: CallPlan) -> None:
        """Store the plan of calls of one form, for the fast path."""
        if len(self.recent) >= RECENT:
            self.recent.clear()
        self.recent[key] = call

    def clear(self) -> None:
        """Drop all versions."""
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
    """Drop the least recently used versions until the others are within the limit; the last one is always kept."""
    for kernel in _kernels:
        kernel.recent.clear()
    versions = [version for kernel in _kernels for version in kernel.built.values()]
    total, oldest, identities = 0, 0, set[int]()
    for k, version in enumerate(sorted(versions, key=lambda version: -version.used)):
        total += version.compiled.memory if id(version.compiled) not in identities else 0
        identities.add(id(version.compiled))
        if k and total > _bound.bytes:
            break
        oldest = version.used
    for kernel in _kernels:
        if any(version.used < oldest for version in kernel.built.values()):
            # Keys are not deleted one by one: the hash of a model that has changed no longer agrees with its key.
            kernel.built = {key: version for key, version in kernel.built.items() if version.used >= oldest}


def kernel_memory(limit: int | None = None) -> int:
    """The limit of the memory of compiled kernels [bytes]; with `limit`, set it first.

    The default is 512 MiB. Beyond it, the least recently used versions are dropped, and built again when they are
    called.

    >>> dl.compiler.kernel_memory() > 0
    True
    """
    if limit is not None:
        if not isinstance(limit, (int, np.integer)) or isinstance(limit, bool) or limit < 0:
            raise ValueError(f"the memory of kernels is {limit!r}; it must be a number of bytes, 0 or more.")
        with compiling:
            _bound.bytes = int(limit)
            _make_room()
    return _bound.bytes


def clear_kernels() -> None:
    """Drop all compiled kernels; each is compiled or loaded again when it is called.

    Ufuncs and bound arrays remain valid.

    >>> dl.compiler.clear_kernels()
    """
    with compiling:
        for kernel in _kernels:
            kernel.clear()
        free_unused()
