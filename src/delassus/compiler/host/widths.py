"""Machine code of a kernel for single states and for batches, each compiled on first use.

LLVM takes most of the compile time, and most programs need only one of the two, or one of them first. The loop that
NumPy calls requests missing code (see `numpy_loop`); callers that know the number of states request it earlier.

Large kernels are compiled at LLVM's lowest level first, and optimized in the background.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final

from delassus.compiler.backends import native
from delassus.compiler.backends.background import LARGE, emit_in_background, quick_target, run_later
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
"""An estimate of the memory of a kernel, from measurements: a constant for its model, its key and LLVM's tables, and a
multiple of its object code, which is loaded as a copy and has further data in LLVM."""


class Widths:
    """The code of one kernel; `memory` is an estimate of its size [bytes]."""

    def __init__(
        self,
        name: str,
        digest: str,
        target: Target,
        descriptor: Descriptor,
        plan: Callable[[], Schedule],
        quick_first: bool = True,
    ) -> None:
        """`plan` returns the schedule of the program, for code that is not in the disk cache. With `quick_first`, large
        kernels are compiled quickly before they are optimized."""
        self.memory = _MEMORY_OF_ANY
        self._name, self._digest, self._target, self._descriptor = name, digest, target, descriptor
        self._stored = cache.directory() is not None  # as it was when the kernel was built
        self._plan: Callable[[], Schedule] | None = plan
        self._quick = quick_target(target) if quick_first else target
        self._unplanned = 0  # pending optimizations without a template
        self._kept = b""  # the template as bytes, once it exists, and as long as it may be used again

    def need(self, many: bool) -> None:
        """Compile or load the code for single states, or with `many` for batches, if it is missing."""
        many = many and self._target.lanes > 1
        if not self._descriptor.has(many):
            with native.compiling:
                if not self._descriptor.has(many):
                    with self._caching():
                        self._make(many)

    def _make(self, many: bool) -> None:
        template, target = None, self._target
        objects = self._load(many, target)
        if objects is None and self._quick != target:
            target = self._quick
            objects = self._load(many, target)
        if objects is None:
            template = self._template()
            target = self._quick if template.operations >= LARGE else self._target
            label = f"{self._name} for {'batches' if many else 'one state'}"
            with compiling(label, template.operations, min(native.CORES, len(template.parts)), target.opt):
                objects = native.emit_objects(template.modules(self._lanes(many)), target)
            self._store(many, target, objects)
        self._install(many, objects)
        if target != self._target:
            self._unplanned += template is None
            run_later(self, partial(Widths._optimize, many=many, template=template))
        self._keep(template)

    def _optimize(self, many: bool, template: Template | None) -> None:
        """Replace quickly compiled code by optimized code, in the background."""
        with self._caching():
            objects = self._load(many, self._target)
            if objects is None:
                modules = (template or self._template()).modules(self._lanes(many))
                objects = emit_in_background(modules, self._target)
                if objects is None:
                    return
                self._store(many, self._target, objects)
            with native.compiling:
                self._install(many, objects)
                self._unplanned -= template is None
                self._keep(None)

    def _keep(self, template: Template | None) -> None:
        """Keep the template as long as code is missing."""
        old_size = len(self._kept)
        if all(map(self._descriptor.has, {False, self._target.lanes > 1})) and not self._unplanned:
            self._plan, self._kept = None, b""
        elif template is not None and not self._kept:
            self._kept = zlib.compress(pickle.dumps(template), 1)
            self._plan = None
        self.memory += len(self._kept) - old_size

    def _install(self, many: bool, objects: list[bytes]) -> None:
        code = native.load(objects, self._target)
        self._descriptor.install(many, code)
        self.memory += _MEMORY_PER_BYTE * code.size

    def _template(self) -> Template:
        """The text of the code, new or stored."""
        plan = self._plan
        if plan is None:
            template: Template = pickle.loads(zlib.decompress(self._kept))
            return template
        with suspend_trace():
            return emit_template(plan(), self._target)

    def _lanes(self, many: bool) -> int:
        return self._target.lanes if many else 1

    def _caching(self) -> AbstractContextManager[None]:
        """Use the disk cache only if it was enabled when the kernel was built."""
        return nullcontext() if self._stored else cache.disable_cache()

    def _load(self, many: bool, target: Target) -> list[bytes] | None:
        packed = cache.load("object", _object_key(self._digest, target, self._lanes(many)))
        return None if packed is None else native.unpack(packed)

    def _store(self, many: bool, target: Target, objects: list[bytes]) -> None:
        cache.store("object", _object_key(self._digest, target, self._lanes(many)), native.pack(objects))


def is_cached(digest: str, target: Target) -> bool:
    """Whether the disk cache has code of a program, for single states or for many."""
    targets = (target, quick_target(target))
    return any(cache.has("object", _object_key(digest, x, lanes)) for x in targets for lanes in (1, target.lanes))


def _object_key(digest: str, target: Target, lanes: int) -> str:
    return cache_key("object", digest, target, lanes)


def cache_key(*parts: Any) -> str:
    """The key of an entry in the disk cache; it also depends on the sources of this package."""
    versions = (source_digest(), native.VERSION)
    return hashlib.sha256(repr((versions, *parts)).encode()).hexdigest()
