"""Builds a kernel: program, machine code, ufunc; loads them from the disk cache if possible.

There are two levels. A kernel of this package is found by what it is made from (package source, function, model,
options), without tracing it; that entry names the program's digest. Machine code is found by that digest, so a
kernel that anybody wrote is traced again in each process and compiled once.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from delassus.compiler.backends.frame import LARGEST_FRAME
from delassus.compiler.backends.llvm.module import check_frame
from delassus.compiler.backends.progress import tracing
from delassus.compiler.backends.schedule import schedule
from delassus.compiler.backends.steps import Schedule, repeats
from delassus.compiler.backends.target import Target
from delassus.compiler.functions.lower import flops, lower
from delassus.compiler.graph.digest import content_digest
from delassus.compiler.graph.program import Operand, Program
from delassus.compiler.host import cache
from delassus.compiler.host.gufunc import make_ufunc
from delassus.compiler.host.runtime import Descriptor, loop_address
from delassus.compiler.host.widths import Widths, cache_key, is_cached
from delassus.compiler.tracing.census import warn_if_large
from delassus.errors import BadArgument, DelassusError


@dataclass(frozen=True)
class Compiled:
    """A kernel for one model: a ufunc, and the addresses that it calls its loop with.

    The addresses are valid as long as the ufunc lives. `widths` is its machine code, made where it is first needed;
    `program` is the digest of what it computes.
    """

    name: str
    program: str
    target: Target
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    dtype: np.dtype[Any]
    flops: int
    ufunc: np.ufunc
    loop: int
    data: int
    widths: Widths

    @property
    def memory(self) -> int:
        """About how many bytes it takes."""
        return self.widths.memory


@dataclass(frozen=True)
class Recipe:
    """What a kernel is made from.

    `identity` is what decides the program if the function is part of this package (the model and the options);
    None for any other function, which is traced to know what it does. With `quick_first` large code is compiled quickly
    before it is optimized.
    """

    name: str
    doc: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    trace: Callable[[], Program]
    identity: Any | None
    target: Target
    quick_first: bool = True


@dataclass(frozen=True)
class _Facts:
    """What is known of a program without having it: its digest, its floating-point operations, its slots, and whether
    much of it repeats as often as its states need."""

    program: str
    flops: int
    slots: int
    repeats: bool

    def fit(self, recipe: Recipe) -> bool:
        """Whether they can be those of a kernel: a frame of another size would be written beyond its end."""
        least = sum(operand.slots for operand in (*recipe.inputs, *recipe.outputs))
        are_integers = type(self.flops) is int and type(self.slots) is int
        kinds = are_integers and type(self.program) is str and type(self.repeats) is bool
        return kinds and self.flops >= 0 and least <= self.slots <= LARGEST_FRAME


Known: TypeAlias = Callable[[str, Target], Compiled | None]
"""Finds the version of a kernel that has a program, by its digest, if there is one."""


def build(recipe: Recipe, known: Known = lambda digest, target: None) -> Compiled:
    """Machine code for a recipe: known by its program, compiled or loaded."""
    if not recipe.target.is_here:
        raise DelassusError(
            f"{recipe.name}: the target is another machine ({recipe.target.cpu}) than this one, or has instructions "
            "that this one lacks.",
            code="wrong-machine",
        )
    for operand in (*recipe.inputs, *recipe.outputs):
        if operand.size == 0:
            raise BadArgument(
                f"{recipe.name}: {operand.name} has shape {operand.shape}, and a ufunc cannot have an axis of length "
                "0. Handle the empty case before calling the kernel.",
                code="wrong-shape",
            )
    slots = sum(operand.slots for operand in (*recipe.inputs, *recipe.outputs))
    if slots > LARGEST_FRAME:
        raise DelassusError(
            f"{recipe.name}: inputs and outputs of one state hold {slots} numbers, and at most {LARGEST_FRAME} are "
            "possible.",
            code="kernel-too-large",
        )
    entry = _find(recipe)
    if entry is None:
        program = _traced(recipe)
        existing = known(program.digest, recipe.target)
        if existing is not None:
            return existing
        entry = _plan(recipe, program)
    facts, plan = entry
    descriptor = Descriptor(recipe.inputs, recipe.outputs, facts.slots, recipe.target, facts.repeats)
    widths = Widths(recipe.name, facts.program, recipe.target, descriptor, plan, recipe.quick_first)
    makers = (partial(widths.need, False), partial(widths.need, True))
    descriptor.set_builders(makers)
    loop, data, owners = loop_address(recipe.target), descriptor.address, (descriptor, makers)
    dtype = recipe.target.precision.dtype
    ufunc = make_ufunc(loop, data, recipe.name, recipe.doc, recipe.inputs, recipe.outputs, dtype, owners)
    inputs, outputs = recipe.inputs, recipe.outputs
    return Compiled(
        recipe.name, facts.program, recipe.target, inputs, outputs, dtype, facts.flops, ufunc, loop, data, widths
    )


def _traced(recipe: Recipe) -> Program:
    with tracing(recipe.name), _collecting_later():
        program = recipe.trace()
        warn_if_large(recipe.name, program, recipe.trace)
    return program


def _plan(recipe: Recipe, program: Program) -> tuple[_Facts, Callable[[], Schedule]]:
    """Lowered and scheduled; leaves what is known of the program in the cache."""
    with tracing(recipe.name), _collecting_later():
        lowered = lower(program, recipe.target.fma, recipe.target.precision)
        planned = schedule(lowered)
    check_frame(planned)
    facts = _Facts(program.digest, flops(lowered), planned.frame, repeats(planned))
    index = _index_key(recipe)
    if index:
        cache.store("index", index, json.dumps(asdict(facts)).encode())
    return facts, lambda: planned


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Without Python's search for garbage, which looks at the growing graph again and again, and finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _find(recipe: Recipe) -> tuple[_Facts, Callable[[], Schedule]] | None:
    """A kernel of this package, if the cache has some of its code; it is traced should more be needed."""
    index = _index_key(recipe)
    entry = cache.load("index", index) if index else None
    if entry is None:
        return None
    try:
        facts = _Facts(**json.loads(entry))
    except (ValueError, TypeError, RecursionError):
        return None

    def plan() -> Schedule:
        again, planned = _plan(recipe, _traced(recipe))
        if again != facts:
            raise DelassusError(
                f"{recipe.name}: the model has changed since the kernel was made for it.", code="changed-model"
            )
        return planned()

    return (facts, plan) if facts.fit(recipe) and is_cached(facts.program, recipe.target) else None


def _index_key(recipe: Recipe) -> str | None:
    if recipe.identity is None:
        return None
    digest = content_digest(recipe.identity)
    return (
        None
        if digest is None
        else cache_key("index", recipe.name, recipe.inputs, recipe.outputs, digest, recipe.target)
    )
