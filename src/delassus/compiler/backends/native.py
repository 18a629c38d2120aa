"""Compiles IR text to machine code in memory by LLVM, and frees it."""

from __future__ import annotations

import ctypes
import logging
import os
import struct
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, pairwise

import llvmlite
import llvmlite.binding as llvm

from delassus.compiler.backends.target import Target
from delassus.errors import DelassusError

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
VERSION = f"llvmlite {llvmlite.__version__}"

compiling = threading.RLock()
"""Lock for building kernels: LLVM compiles one kernel at a time. A fork acquires it first."""

optimizing = threading.RLock()
"""Lock for LLVM in the background thread. A fork acquires it, too. Its holder acquires no other lock."""

log = logging.getLogger("delassus")
"""Logger of compilations. A fork acquires locks in the reverse order of their hooks. `logging` is imported before these
hooks are registered, so a fork acquires its lock after `compiling`, in the same order as code that logs while
compiling.
"""

if hasattr(os, "register_at_fork"):
    for lock in (optimizing, compiling):  # a fork acquires the lock that is registered last, `compiling`, first
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

_unused: deque[llvm.ExecutionEngine] = deque()
"""Engines of code without owners."""


class Code:
    """Loaded machine code, valid as long as this object exists; users of its addresses must keep a reference to it."""

    def __init__(self, engine: llvm.ExecutionEngine, size: int, objects: int) -> None:
        self.size = size
        self.objects = objects
        self._engine = engine
        # At the end of the process nothing is freed: other threads may still compute.
        weakref.finalize(self, _release, engine).atexit = False

    def address(self, name: str) -> int:
        """The address of a function."""
        address = int(self._engine.get_function_address(name))
        if not address:
            raise DelassusError(f"the machine code has no function {name!r}.", code="compilation-failed")
        return address


def _release(engine: llvm.ExecutionEngine) -> None:
    """Free an engine now, or, while another thread compiles, when the next one is loaded.

    Finalizers run at any time, so this must not wait for a lock.
    """
    _unused.append(engine)
    if compiling.acquire(blocking=False):
        try:
            free_unused()
        finally:
            compiling.release()


def free_unused() -> None:
    """Free code without owners. The caller holds `compiling`, so that no fork interrupts it."""
    while _unused:
        _unused.pop().close()


def parse(text: str) -> llvm.ModuleRef:
    """Parse and verify a module: malformed IR would crash the process later."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return module


def emit_object(text: str, target: Target) -> bytes:
    """Object code of a module."""
    with compiling:
        module = parse(text)
        return bytes(target.machine(_is_closed(module)).emit_object(module))


def emit_objects(texts: Sequence[str], target: Target) -> list[bytes]:
    """Object code of several modules, compiled in parallel on the available cores."""
    if len(texts) == 1 or CORES == 1:
        return [emit_object(text, target) for text in texts]
    with compiling:
        # The threads do not acquire `compiling`: the thread that waits for them holds it.
        waiting, objects = list(range(len(texts))), dict[int, bytes]()
        problems: list[BaseException] = []

        def work() -> None:
            try:
                while waiting and not problems:
                    k = waiting.pop()
                    objects[k] = emit_at_once(texts[k], target)
            except IndexError:  # another thread compiles the last module
                pass
            except BaseException as problem:
                problems.append(problem)

        helpers = []
        try:
            for _ in range(min(CORES, len(texts)) - 1):
                helper = threading.Thread(target=work, name="delassus-llvm")
                try:
                    helper.start()
                except RuntimeError:  # the interpreter is about to end, or the system has no more threads
                    break
                helpers.append(helper)
            work()
        finally:
            waiting.clear()
            for helper in helpers:
                helper.join()
        if problems:
            raise problems[0]
        return [objects[k] for k in range(len(texts))]


def emit_at_once(text: str, target: Target) -> bytes:
    """Object code of a module, compiled while other threads do the same.

    llvmlite admits one thread at a time into LLVM. LLVM itself only requires that threads do not share a context. So
    the long step bypasses that lock, if this llvmlite provides the function.
    """
    module = parse(text)
    machine = target.machine(_is_closed(module))
    emit = getattr(llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if emit is None:
        return bytes(machine.emit_object(module))
    with llvm.ffi.OutputString() as problem:
        buffer = emit(machine, module, 1, problem)
        if not buffer:
            raise DelassusError(f"LLVM could not compile a kernel: {problem}", code="compilation-failed")
    try:
        start, size = llvm.ffi.lib.LLVMPY_GetBufferStart(buffer), llvm.ffi.lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        llvm.ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def emit_assembly(text: str, target: Target) -> str:
    """Assembly text of a module, for reading."""
    with compiling:
        module = parse(text)
        return str(target.machine(_is_closed(module)).emit_assembly(module))


def _is_closed(module: llvm.ModuleRef) -> bool:
    """Whether a module calls nothing but its own functions and LLVM's intrinsics."""
    return all(not f.is_declaration or f.name.startswith("llvm.") for f in module.functions)


def load(objects: Sequence[bytes], target: Target) -> Code:
    """Load object code into memory."""
    with compiling:
        free_unused()
        empty = llvm.parse_assembly("", llvm.create_context())
        # llvmlite's memory manager places the sections of an object next to each other; LLVM's does not guarantee this.
        engine = llvm.create_mcjit_compiler(empty, target.machine(), use_lmm=True if target.is_compact else None)
        for object_code in objects:
            engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
    return Code(engine, sum(map(len, objects)), len(objects))


def pack(objects: Sequence[bytes]) -> bytes:
    """Pack several objects into one byte string."""
    sizes = [len(objects), *map(len, objects)]
    return b"".join((struct.pack(f"<{len(sizes)}Q", *sizes), *objects))


def unpack(packed: bytes) -> list[bytes]:
    """The objects in a byte string of `pack`."""
    (count,) = struct.unpack_from("<Q", packed)
    sizes = struct.unpack_from(f"<{count}Q", packed, 8)
    offsets = [*accumulate(sizes, initial=8 * (count + 1))]
    return [packed[a:b] for a, b in pairwise(offsets)]
