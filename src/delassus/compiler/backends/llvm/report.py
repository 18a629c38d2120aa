"""Reports on a kernel: its operations, its machine code, its compile time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite.binding as llvm

from delassus.compiler.backends import native
from delassus.compiler.backends.llvm.module import emit_template
from delassus.compiler.backends.schedule import schedule
from delassus.compiler.backends.steps import count_chunks
from delassus.compiler.backends.target import Target
from delassus.compiler.functions.lower import flops, lower
from delassus.compiler.graph.program import Program


@dataclass(frozen=True)
class Report:
    """Operations, code and compile times of a kernel.

    Attributes:
        name: The kernel.
        target: The machine that it is compiled for.
        traced: Operations by type as traced, with constants folded.
        operations: Operations by type after lowering: elementary functions expanded, multiply-adds fused.
        flops: Floating-point operations of one state (a fused multiply-add counts 2).
        chunks: Pieces of straight-line code.
        slots: Values kept in memory per state, inputs and outputs included.
        code_bytes: Size of the machine code, scalar and vector versions together.
        seconds: Compile time by stage.
        ir: The LLVM IR, as text.
        digest: The program's digest.
    """

    name: str
    target: Target
    traced: dict[str, int]
    operations: dict[str, int]
    flops: int
    chunks: int
    slots: int
    code_bytes: int
    seconds: dict[str, float]
    ir: str
    digest: str

    @property
    def assembly(self) -> str:
        """The machine code as assembly text."""
        return native.emit_assembly(self.ir, self.target)

    def __str__(self) -> str:
        def kinds(counts: dict[str, int]) -> str:
            descending = sorted(counts.items(), key=lambda item: -item[1])
            return f"{sum(counts.values())} ({', '.join(f'{n} {kind}' for kind, n in descending)})"

        stages = ", ".join(f"{stage} {1e3 * t:.1f}" for stage, t in self.seconds.items())
        return (
            f"{self.name} for {self.target.cpu}, {self.target.lanes} lanes of {self.target.precision.name}\n  traced "
            f"operations   {kinds(self.traced)}\n  machine operations  {kinds(self.operations)}\n  flops               "
            f"{self.flops}\n  chunks              {self.chunks}\n  slots               {self.slots}\n  machine code    "
            f"    {self.code_bytes} bytes\n  compile time [ms]   {stages}"
        )

    __repr__ = __str__


def make_report(name: str, trace: Callable[[], Program], target: Target) -> Report:
    """Compile a program without the cache, and measure each stage."""
    seconds: dict[str, float] = {}

    @contextmanager
    def stage(label: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds[label] = time.perf_counter() - start

    with stage("trace"):
        program = trace()
    with stage("lower"):
        lowered = lower(program, target.fma, target.precision)
    with stage("schedule"):
        planned = schedule(lowered)
    with stage("emit"):
        template = emit_template(planned, target)
    objects = []
    for label, lanes in (("llvm for one state", 1), ("llvm for batches", target.lanes))[: 1 + (target.lanes > 1)]:
        with stage(label):
            objects += native.emit_objects(template.modules(lanes), target)
    with stage("load"):
        native.load(objects, target)
    return Report(
        name=name,
        target=target,
        traced=program.count(),
        operations=lowered.count(),
        flops=flops(lowered),
        chunks=count_chunks(planned),
        slots=planned.frame,
        code_bytes=sum(
            section.size()
            for object_code in objects
            for section in llvm.ObjectFileRef.from_data(object_code).sections()
            if section.is_text()
        ),
        seconds=seconds,
        ir=template.everything(),
        digest=program.digest,
    )
