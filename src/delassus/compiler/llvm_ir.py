"""Emits the chunks of a schedule as LLVM IR text.

The text is written once, with marks where the number of lanes matters, and filled in for each width: one state per
lane, so the scalar and the vector versions differ in nothing but their types and compute the same bits. Values are
numbered, not named, which LLVM reads fastest. LLVM's verifier reads it all before anything runs.

There is one exception: a single state leaves the vector registers empty, so that the executions of a `map` take the
lanes there. These are the same operations on the same numbers, and give the same bits.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from delassus.compiler.llvm_chunk import DECLARATIONS, GATHER, ONE_IN_MEMORY, ChunkText
from delassus.compiler.llvm_loop import emit_loop_step, emit_wide_step, widened
from delassus.compiler.llvm_marks import fill_in
from delassus.compiler.precision import Precision
from delassus.compiler.program import Program
from delassus.compiler.steps import Chunk, LoopStep, Schedule
from delassus.compiler.target import Target
from delassus.errors import DelassusError

LARGEST_FRAME: Final = 128 * 1024  # slots: one megabyte for one state

_REDUCTION: Final = "declare i1 @llvm.vector.reduce.or.v$Xi1($B)\n"


def emit_module(schedule: Schedule, target: Target) -> str:
    """The module of a kernel: `start` for a new frame, `body1` and `body2` for one and two groups of lanes."""
    if schedule.frame > LARGEST_FRAME:
        raise DelassusError(
            f"the kernel keeps {schedule.frame} values alive at once, at most {LARGEST_FRAME} are possible: "
            "split it, or make its arrays smaller."
        )
    functions: list[_Function] = []
    calls = _emit_steps(schedule, functions, target)
    start, body = _emit_start(schedule, target), _emit_body1(calls)
    widths = {f.width for f in functions} - {1, target.lanes}
    text = _emit_tables(schedule.program, target.precision)
    text += fill_in((ONE_IN_MEMORY if schedule.roots else "") + DECLARATIONS, 1, target.precision)
    text += "".join(fill_in(DECLARATIONS + GATHER, lanes, target.precision) for lanes in sorted(widths))
    text += "".join(fill_in(f.alone, f.width, target.precision) for f in functions)
    text += fill_in(start + body, 1, target.precision)
    if target.lanes > 1:
        parts = [DECLARATIONS, GATHER, *(f.text for f in functions), start, body, _REDUCTION]
        text += fill_in("".join((*parts, _emit_body2(calls, 2 * target.lanes))), target.lanes, target.precision)
    return text + target.attributes


@dataclass(frozen=True)
class _Function:
    """The text of a function, with marks; and the one for a single state, in so many lanes."""

    text: str
    alone: str
    width: int = 1


def _emit_steps(
    schedule: Schedule, functions: list[_Function], target: Target, inside: LoopStep | None = None
) -> list[str]:
    """A function per chunk and per loop, `void step(ptr frame, ptr frame)`, appended to `functions`; returns names.

    A chunk gets its frame twice, as a place to read and as a place to write. No slot is read and written in the
    same chunk, so the two never alias, and LLVM may order loads and stores freely. In the body of a loop it also gets
    the addresses of its item and of what is kept.
    """
    names = []
    wide = None if inside is None else widened(inside, target)
    for step in schedule.steps:
        if isinstance(step, Chunk):
            name = f"@chunk{len(functions)}_x$X"
            item = ", ptr noalias readonly %item, ptr noalias writeonly %keep" if inside else ""
            header = f"(ptr noalias readonly %frame, ptr noalias writeonly %out{item}"
            lines = ChunkText(schedule, step, target, inside).text()
            text = alone = f"define internal void {name}{header}) #0 {{\nentry:\n{lines}  ret void\n}}\n"
            if wide:
                lines = ChunkText(schedule, step, target, inside, wide).text()
                alone = f"define internal void {wide.named(name)}{header}, ptr noalias readonly %scratch) #0 {{\n"
                alone += f"entry:\n{lines}  ret void\n}}\n"
            functions.append(_Function(text, alone, wide.width if wide else 1))
        else:
            calls = _emit_steps(step.body, functions, target, step)
            name = f"@loop{len(functions)}_x$X"
            text, inner = emit_loop_step(step, name, calls), widened(step, target)
            functions.append(_Function(text, emit_wide_step(step, name, calls, inner) if inner else text))
        names.append(name)
    return names


def _emit_tables(program: Program, precision: Precision) -> str:
    """The tables that a program reads, as constants of the module: bytes, which LLVM reads faster than numbers."""
    text, words = "", np.array([f"\\{byte:02X}" for byte in range(256)], "S3")
    for table in program.tables:
        data = np.frombuffer(table.rounded(precision).astype(f"<f{precision.bytes}").tobytes(), np.uint8)
        content = words[data].tobytes().decode()
        text += f'@table_{table.digest} = internal constant [ {data.size} x i8 ] c"{content}", align 64\n'
    return text


def _emit_start(schedule: Schedule, target: Target) -> str:
    """`start(frame)`: outputs that are constants, which stay in a frame for all the states that pass through it."""
    lines = ChunkText(schedule, Chunk((), schedule.fixed), target).text()
    return f"define void @start_x$X(ptr %out) #0 {{\nentry:\n{lines}  ret void\n}}\n"


def _emit_body1(steps: list[str]) -> str:
    """`body1(frame)`: all steps for one frame."""
    calls = "".join(f"  call void {name}(ptr %a, ptr %a)\n" for name in steps)
    return f"define void @body1_x$X(ptr %a) #0 {{\n{calls}  ret void\n}}\n"


def _emit_body2(steps: list[str], states: int) -> str:
    """`body2(a, b, fetch, context, ahead)`: all steps for two frames that take turns.

    So the code of a chunk is fetched once for both: large kernels are limited by the fetching of their code, not by
    arithmetic. Between the steps, `fetch(context, state, count)` asks for the memory of the next `states` states,
    from `ahead` on, a few at a time, at a pace that the memory can follow.
    """
    text = "define void @body2_x$X(ptr %a, ptr %b, ptr %fetch, ptr %context, i64 %ahead) #0 {\n"
    for c, name in enumerate(steps):
        text += f"  call void {name}(ptr %a, ptr %a)\n  call void {name}(ptr %b, ptr %b)\n"
        first, end = states * c // len(steps), states * (c + 1) // len(steps)
        if end > first:
            text += f"  %next{c} = add i64 %ahead, {first}\n"
            text += f"  call void %fetch(ptr %context, i64 %next{c}, i64 {end - first})\n"
    return text + "  ret void\n}\n"
