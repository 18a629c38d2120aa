"""Builds a kernel: program, machine code, ufunc; from the disk cache where it can.

There are two levels. A kernel of this package is found by what it is made from (package source, function, model,
options), without tracing it; that entry names the program's digest. Machine code is found by that digest, so a
kernel that anybody wrote is traced again in each process and compiled once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite
import numpy as np

from delassus.compiler import cache, driver, native
from delassus.compiler.digest import content_digest, source_digest
from delassus.compiler.gufunc import make_ufunc
from delassus.compiler.lower import flops, lower
from delassus.compiler.program import Operand, Program
from delassus.compiler.schedule import schedule
from delassus.compiler.target import Target


@dataclass(frozen=True)
class Compiled:
    """A kernel for one model, ready to run."""

    name: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    ufunc: np.ufunc
    address: int
    flops: int


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


def build(recipe: Recipe) -> Compiled:
    """Machine code for a recipe, compiled or loaded."""
    known = _find(recipe)
    if known is None:
        program = recipe.trace()
        lowered = lower(program, recipe.target.fma)
        digest, work = program.digest, flops(lowered)
        code_key = _key("object", digest, recipe.target)
        object_code = cache.load("object", code_key)
        if object_code is None:
            object_code = native.emit_object(driver.emit_module(schedule(lowered), recipe.target), recipe.target)
            cache.store("object", code_key, object_code)
        _remember(recipe, digest, work)
    else:
        object_code, work = known
    address = native.load(object_code, recipe.target).address(driver.LOOP)
    ufunc = make_ufunc(address, recipe.name, recipe.doc, recipe.inputs, recipe.outputs)
    return Compiled(recipe.name, recipe.inputs, recipe.outputs, ufunc, address, work)


def _find(recipe: Recipe) -> tuple[bytes, int] | None:
    """Machine code and work of a kernel of this package, if both levels of the cache have it."""
    key = _index_key(recipe)
    entry = cache.load("index", key) if key else None
    if entry is None:
        return None
    index = json.loads(entry)
    object_code = cache.load("object", _key("object", index["program"], recipe.target))
    return None if object_code is None else (object_code, int(index["flops"]))


def _remember(recipe: Recipe, digest: str, work: int) -> None:
    key = _index_key(recipe)
    if key:
        cache.store("index", key, json.dumps({"program": digest, "flops": work}).encode())


def _index_key(recipe: Recipe) -> str | None:
    if recipe.identity is None:
        return None
    digest = content_digest(recipe.identity)
    return None if digest is None else _key("index", recipe.name, recipe.inputs, recipe.outputs, digest, recipe.target)


def _key(*parts: Any) -> str:
    versions = (source_digest(), llvmlite.__version__)
    return hashlib.sha256(repr((versions, *parts)).encode()).hexdigest()
