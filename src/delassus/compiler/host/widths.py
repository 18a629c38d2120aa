"""Machine code of a kernel for single states and for batches, each compiled on first use.

Most of the time that compiling takes is LLVM's, and most programs need one of the two, or one of them first. The loop
that NumPy calls asks for what is missing (see `numpy_loop`); those who know the number of states beforehand ask before.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from delassus.compiler.backends import native
from delassus.compiler.backends.llvm.module import Template, emit_template
from delassus.compiler.backends.progress import compiling
from delassus.compiler.backends.steps import Schedule
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.digest import source_digest
from delassus.compiler.host import cache
from delassus.compiler.host.runtime import Descriptor
from delassus.compiler.tracing.trace import suspend_trace

_MEMORY_OF_ANY: Final = 128 * 1024
_MEMORY_PER_BYTE: Final = 3
"""What a kernel takes of memory: LLVM's tables around its code, its model and the key it is found by; and for each byte
of object code that byte, its copy in place, and what LLVM remembers of both. Measured, and no more than an estimate."""


class Widths:
    """The code of one kernel; `memory` is about how many bytes it takes."""

    def __init__(
        self, name: str, digest: str, target: Target, descriptor: Descriptor, plan: Callable[[], Schedule]
    ) -> None:
        """`plan` gives the schedule of the program with that digest, if the disk cache does not have its code."""
        self.memory = _MEMORY_OF_ANY
        self._name, self._digest, self._target, self._descriptor = name, digest, target, descriptor
        self._stored = cache.directory() is not None  # that was decided when the kernel was built
        self._plan: Callable[[], Schedule] | None = plan
        self._kept = b""  # the template, once it was made, and as long as it may be needed again

    def need(self, many: bool) -> None:
        """Make the code for single states, or for many, unless it is there."""
        many = many and self._target.lanes > 1
        if not self._descriptor.has(many):
            with native.compiling:
                if not self._descriptor.has(many):
                    with nullcontext() if self._stored else cache.disable_cache():
                        self._make(many)

    def _make(self, many: bool) -> None:
        lanes = self._target.lanes if many else 1
        key = _object_key(self._digest, self._target, lanes)
        packed, template = cache.load("object", key), None
        if packed is None:
            template = self._template()
            what = f"{self._name} for {'batches' if many else 'one state'}"
            with compiling(what, template.operations, min(native.CORES, len(template.parts))):
                objects = native.emit_objects(template.modules(lanes), self._target)
            cache.store("object", key, native.pack(objects))
        else:
            objects = native.unpack(packed)
        code = native.load(objects, self._target)
        self._descriptor.install(many, code)
        self.memory += _MEMORY_PER_BYTE * code.size - len(self._kept)
        if self._target.lanes == 1 or self._descriptor.has(not many):
            self._plan, self._kept = None, b""
        elif template is not None and not self._kept:
            self._plan, self._kept = None, zlib.compress(pickle.dumps(template), 1)
        self.memory += len(self._kept)

    def _template(self) -> Template:
        """The text of the code, made or kept."""
        if self._plan is None:
            kept: Template = pickle.loads(zlib.decompress(self._kept))
            return kept
        with suspend_trace():
            return emit_template(self._plan(), self._target)


def is_cached(digest: str, target: Target) -> bool:
    """Whether the disk cache has code of a program, for single states or for many."""
    return any(cache.has("object", _object_key(digest, target, lanes)) for lanes in (1, target.lanes))


def _object_key(digest: str, target: Target, lanes: int) -> str:
    return cache_key("object", digest, target, lanes)


def cache_key(*parts: Any) -> str:
    """The name of something in the disk cache that depends on the sources of this package, too."""
    versions = (source_digest(), native.VERSION)
    return hashlib.sha256(repr((versions, *parts)).encode()).hexdigest()
