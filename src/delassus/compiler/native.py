"""From IR text to machine code in memory, through LLVM, and back out of memory."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque

import llvmlite
import llvmlite.binding as llvm

from delassus.compiler.target import Target
from delassus.errors import DelassusError

VERSION = f"llvmlite {llvmlite.__version__}"

compiling = threading.RLock()
"""Held while anything is built. LLVM compiles one kernel at a time anyway, and a fork waits until it is done."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=compiling.release)

_unused: deque[llvm.ExecutionEngine] = deque()
"""Engines whose code nobody holds any more."""


class Code:
    """Loaded machine code; it is valid as long as this object lives, so who keeps an address keeps this as well."""

    def __init__(self, engine: llvm.ExecutionEngine, size: int) -> None:
        self.size = size
        self._engine = engine
        # At the end of the process nothing is freed: other threads may still compute.
        weakref.finalize(self, _let_go, engine).atexit = False

    def address(self, name: str) -> int:
        """Where a function starts."""
        address = int(self._engine.get_function_address(name))
        if not address:
            raise DelassusError(f"the machine code has no function {name!r}.")
        return address


def _let_go(engine: llvm.ExecutionEngine) -> None:
    """Free an engine now, or, while another thread compiles, when the next one is loaded.

    Objects end anywhere, so nothing here may wait for a lock.
    """
    _unused.append(engine)
    if compiling.acquire(blocking=False):
        try:
            free_unused()
        finally:
            compiling.release()


def free_unused() -> None:
    """Free the code that nobody holds any more; `compiling` is held, so that no fork comes in the middle of it."""
    while _unused:
        _unused.pop().close()


def parse(text: str) -> llvm.ModuleRef:
    """A verified module: malformed IR would end the process later on."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return module


def emit_object(text: str, target: Target) -> bytes:
    """Object code of a module."""
    with compiling:
        module = parse(text)
        return bytes(target.machine(_is_closed(module)).emit_object(module))


def emit_assembly(text: str, target: Target) -> str:
    """Assembly text of a module, for reading."""
    with compiling:
        module = parse(text)
        return str(target.machine(_is_closed(module)).emit_assembly(module))


def _is_closed(module: llvm.ModuleRef) -> bool:
    """Whether a module calls nothing but its own functions and LLVM's intrinsics."""
    return all(not f.is_declaration or f.name.startswith("llvm.") for f in module.functions)


def load(object_code: bytes, target: Target) -> Code:
    """Object code made callable."""
    with compiling:
        free_unused()
        empty = llvm.parse_assembly("", llvm.create_context())
        # llvmlite's own memory manager puts the sections of an object side by side; LLVM's does not promise to.
        engine = llvm.create_mcjit_compiler(empty, target.machine(), use_lmm=True if target.is_compact else None)
        engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
    return Code(engine, len(object_code))
