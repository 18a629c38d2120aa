"""Builds a kernel: program, machine code, ufunc; loads them from the disk cache if possible.

The cache has two levels. For a kernel of this package, an index maps its recipe (package source, function, model,
options) to the digest of its program, so it need not be traced. Machine code is stored by the digest of the program.
Kernels of users have no index entry: they are traced in each process, but compiled only once.
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
    """A kernel for one model: a ufunc, and the addresses of its loop and of the data of the loop.

    The addresses are valid as long as the ufunc exists. `widths` is its machine code, which is compiled on first use;
    `program` is the digest of the program.
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
        """The approximate memory of the kernel [bytes]."""
        return self.widths.memory


@dataclass(frozen=True)
class Recipe:
    """The data from which a kernel is built.

    `identity` (the model and the options) determines the program if the function is part of this package; it is None
    for other functions, which must be traced. With `quick_first`, large code is compiled quickly before it is
    optimized.
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
    """Facts on a program in the index.

    Attributes:
        program: Its digest.
        flops: Its floating-point operations.
        slots: The number of slots of its frame.
        repeats: Whether a large part of it is in conditional loops.
    """

    program: str
    flops: int
    slots: int
    repeats: bool

    def fit(self, recipe: Recipe) -> bool:
        """Whether the facts can be those of a recipe: kernels would write beyond the end of a frame of wrong size."""
        operand_slots = sum(operand.slots for operand in (*recipe.inputs, *recipe.outputs))
        are_integers = type(self.flops) is int and type(self.slots) is int
        types_agree = are_integers and type(self.program) is str and type(self.repeats) is bool
        return types_agree and self.flops >= 0 and operand_slots <= self.slots <= LARGEST_FRAME


Known: TypeAlias = Callable[[str, Target], Compiled | None]
"""A function that returns the compiled version of a kernel with the same program, given by its digest, or None."""


def build(recipe: Recipe, find_version: Known = lambda digest, target: None) -> Compiled:
    """The kernel of a recipe: an existing version with the same program, or one that is loaded or compiled."""
    if not recipe.target.is_here:
        raise DelassusError(
            f"{recipe.name}: the target is another machine ({recipe.target.cpu}), or has instructions that this one "
            "does not support; use Target.host().",
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
            f"{recipe.name}: inputs and outputs of one state have {slots} numbers; the limit is {LARGEST_FRAME}. Make "
            "the arrays smaller.",
            code="kernel-too-large",
        )
    entry = _find(recipe)
    if entry is None:
        program = _traced(recipe)
        existing = find_version(program.digest, recipe.target)
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
    """Lower and schedule a program, and store its facts in the index."""
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
    """Disable Python's garbage collector, which would traverse the growing graph repeatedly and free nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _find(recipe: Recipe) -> tuple[_Facts, Callable[[], Schedule]] | None:
    """Facts on a kernel of this package, if the cache has code of it, and a function that traces and schedules it."""
    index = _index_key(recipe)
    entry = cache.load("index", index) if index else None
    if entry is None:
        return None
    try:
        facts = _Facts(**json.loads(entry))
    except (ValueError, TypeError, RecursionError):
        return None

    def plan() -> Schedule:
        new_facts, planned = _plan(recipe, _traced(recipe))
        if new_facts != facts:
            raise DelassusError(
                f"{recipe.name}: the model has changed since its kernel was built; change a copy of it instead.",
                code="changed-model",
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
