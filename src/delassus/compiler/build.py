"""Builds a kernel: program, machine code, ufunc; from the disk cache where it can.

There are two levels. A kernel of this package is found by what it is made from (package source, function, model,
options), without tracing it; that entry names the program's digest. Machine code is found by that digest, so a
kernel that anybody wrote is traced again in each process and compiled once.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from delassus.compiler import cache, native
from delassus.compiler.census import warn_if_large
from delassus.compiler.digest import content_digest, source_digest
from delassus.compiler.gufunc import make_ufunc
from delassus.compiler.llvm_ir import LARGEST_FRAME, emit_module
from delassus.compiler.lower import flops, lower
from delassus.compiler.program import Operand, Program
from delassus.compiler.runtime import describe, loop_address
from delassus.compiler.schedule import schedule
from delassus.compiler.target import Target
from delassus.errors import DelassusError


@dataclass(frozen=True)
class Compiled:
    """A kernel for one model, ready to run: a ufunc, and the addresses that it calls its loop with.

    The addresses are valid as long as the ufunc lives; `memory` is about how many bytes it takes.
    """

    name: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    dtype: np.dtype[Any]
    flops: int
    ufunc: np.ufunc
    loop: int
    data: int
    memory: int


@dataclass(frozen=True)
class Recipe:
    """What a kernel is made from.

    `identity` is what decides the program if the function is part of this package (the model and the options);
    None for any other function, which is traced to know what it does.
    """

    name: str
    doc: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    trace: Callable[[], Program]
    identity: Any | None
    target: Target


@dataclass(frozen=True)
class _Facts:
    """What is known of a program without having it: its digest, its floating-point operations, its slots."""

    program: str
    flops: int
    slots: int

    def fit(self, recipe: Recipe) -> bool:
        """Whether they can be those of a kernel: a frame of another size would be written beyond its end."""
        least = sum(operand.slots for operand in (*recipe.inputs, *recipe.outputs))
        numbers = type(self.flops) is int and type(self.slots) is int and type(self.program) is str
        return numbers and self.flops >= 0 and least <= self.slots <= LARGEST_FRAME


def build(recipe: Recipe) -> Compiled:
    """Machine code for a recipe, compiled or loaded."""
    if not recipe.target.is_here:
        raise DelassusError(
            f"{recipe.name}: the target is another machine ({recipe.target.cpu}) than this one, or has instructions "
            "that this one lacks."
        )
    for operand in (*recipe.inputs, *recipe.outputs):
        if operand.size == 0:
            raise DelassusError(
                f"{recipe.name}: {operand.name} has shape {operand.shape}, and a ufunc cannot have an axis of length "
                "0. Handle the empty case before calling the kernel."
            )
    numbers = sum(operand.slots for operand in (*recipe.inputs, *recipe.outputs))
    if numbers > LARGEST_FRAME:
        raise DelassusError(
            f"{recipe.name}: inputs and outputs of one state hold {numbers} numbers, and at most {LARGEST_FRAME} are "
            "possible."
        )
    facts, object_code = _find(recipe) or _make(recipe)
    code = native.load(object_code, recipe.target)
    descriptor = describe(recipe.inputs, recipe.outputs, facts.slots, code, recipe.target)
    loop, data = loop_address(recipe.target), ctypes.addressof(descriptor[0])
    dtype = recipe.target.precision.dtype
    ufunc = make_ufunc(loop, data, recipe.name, recipe.doc, recipe.inputs, recipe.outputs, dtype, descriptor)
    memory = _MEMORY_OF_ANY + _MEMORY_PER_BYTE * len(object_code)
    return Compiled(recipe.name, recipe.inputs, recipe.outputs, dtype, facts.flops, ufunc, loop, data, memory)


_MEMORY_OF_ANY = 128 * 1024
_MEMORY_PER_BYTE = 3
"""What a kernel takes of memory: LLVM's tables around its code, its model and the key it is found by; and for each byte
of object code that byte, its copy in place, and what LLVM remembers of both. Measured, and no more than an estimate."""


def _make(recipe: Recipe) -> tuple[_Facts, bytes]:
    """Trace, then compile unless the cache has the program's code; leaves both in the cache."""
    program = recipe.trace()
    warn_if_large(recipe.name, program, recipe.trace)
    lowered = lower(program, recipe.target.fma, recipe.target.precision)
    planned = schedule(lowered)
    facts = _Facts(program.digest, flops(lowered), planned.frame)
    key = _key("object", facts.program, recipe.target)
    object_code = cache.load("object", key)
    if object_code is None:
        object_code = native.emit_object(emit_module(planned, recipe.target), recipe.target)
        cache.store("object", key, object_code)
    index = _index_key(recipe)
    if index:
        cache.store("index", index, json.dumps(asdict(facts)).encode())
    return facts, object_code


def _find(recipe: Recipe) -> tuple[_Facts, bytes] | None:
    """A kernel of this package, if both levels of the cache have it."""
    index = _index_key(recipe)
    entry = cache.load("index", index) if index else None
    if entry is None:
        return None
    try:
        facts = _Facts(**json.loads(entry))
    except (ValueError, TypeError, RecursionError):
        return None
    if not facts.fit(recipe):
        return None
    object_code = cache.load("object", _key("object", facts.program, recipe.target))
    return None if object_code is None else (facts, object_code)


def _index_key(recipe: Recipe) -> str | None:
    if recipe.identity is None:
        return None
    digest = content_digest(recipe.identity)
    return None if digest is None else _key("index", recipe.name, recipe.inputs, recipe.outputs, digest, recipe.target)


def _key(*parts: Any) -> str:
    versions = (source_digest(), native.VERSION)
    return hashlib.sha256(repr((versions, *parts)).encode()).hexdigest()
