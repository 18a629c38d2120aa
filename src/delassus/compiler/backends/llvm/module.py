"""Emits the chunks of a schedule as LLVM IR text.

The text is written once, with placeholders where the number of lanes matters, and filled in for each width: one state
per lane, so the scalar and the vector versions differ only in their types and compute the same bits. Values are
numbered instead of named, which LLVM parses fastest. LLVM's verifier checks it before anything runs.

There is one exception: for a single state, the iterations of a `map` use the lanes. These are the same operations on
the same values, with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from delassus.compiler.backends.frame import LARGEST_FRAME
from delassus.compiler.backends.llvm.chunk import DECLARATIONS, GATHER, ONE_IN_MEMORY, ChunkText
from delassus.compiler.backends.llvm.loop_step import emit_loop_step, emit_wide_step, loop_widths
from delassus.compiler.backends.llvm.placeholders import fill_in
from delassus.compiler.backends.llvm.scatter_step import SCATTER, emit_scatter_step
from delassus.compiler.backends.steps import Chunk, LoopStep, ScatterStep, Schedule, Step, count_operations
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.precision import Precision
from delassus.compiler.graph.program import Program
from delassus.errors import DelassusError

PART: Final = 1500  # smallest number of operations of a part: smaller modules do not save time
MOST_PARTS: Final = 16

_REDUCTION: Final = "declare i1 @llvm.vector.reduce.or.v$Xi1($B)\n"


def check_frame(schedule: Schedule) -> None:
    """Raise an error for a frame that is too large."""
    if schedule.frame > LARGEST_FRAME:
        raise DelassusError(
            f"the kernel needs memory for {schedule.frame} values at once; the limit is {LARGEST_FRAME}. Split it, or "
            "make its arrays smaller.",
            code="kernel-too-large",
        )


def emit_template(schedule: Schedule, target: Target) -> Template:
    """The code of a kernel, to be instantiated for one state or for many."""
    check_frame(schedule)
    functions: list[Function] = []
    end_indices, calls = [], []
    for step in schedule.steps:
        calls += _emit_steps((step,), schedule, functions, target)
        end_indices.append(len(functions))
    parts, first = [], 0
    for k, steps in enumerate(_shared_out(schedule)):
        part_calls, end = calls[steps.start : steps.stop], end_indices[steps.stop - 1]
        body = _emit_start(schedule, target) if k == 0 else ""
        bodies = (
            body + _emit_body1(k, part_calls),
            _emit_body2(k, part_calls, range(steps.start, len(calls)), 2 * target.lanes),
        )
        parts.append(Part(tuple(functions[first:end]), *bodies))
        first = end
    tables = _emit_tables(schedule.program, target.precision)
    return Template(tuple(parts), target, sum(map(count_operations, schedule.steps)), tables, bool(schedule.roots))


def emit_module(schedule: Schedule, target: Target) -> str:
    """All code of a kernel in one module, for reading."""
    return emit_template(schedule, target).everything()


def _shared_out(schedule: Schedule) -> list[range]:
    """The steps of a schedule, cut into ranges that take LLVM about the same time each."""
    sizes = [count_operations(step) for step in schedule.steps]
    total = sum(sizes)
    number = max(1, min(MOST_PARTS, total // PART, len(sizes)))
    ranges: list[range] = []
    first = cumulative = 0
    for k, size in enumerate(sizes):
        cumulative += size
        is_last = k + 1 == len(sizes)
        if is_last or (cumulative * number >= total * (len(ranges) + 1) and len(ranges) + 1 < number):
            ranges.append(range(first, k + 1))
            first = k + 1
    return ranges


@dataclass(frozen=True)
class Function:
    """The text of a function, with placeholders.

    Attributes:
        text: For a group of lanes.
        alone: For a single state.
        width: The number of lanes of `alone`.
    """

    text: str
    alone: str
    width: int = 1


@dataclass(frozen=True)
class Part:
    """Consecutive steps of a kernel.

    Attributes:
        functions: The functions of the steps.
        body1: The function that calls them for one group of lanes.
        body2: The function that calls them for two groups.
    """

    functions: tuple[Function, ...]
    body1: str
    body2: str


@dataclass(frozen=True)
class Template:
    """The code of a kernel as text with placeholders, in parts that LLVM can compile separately.

    The function `start_x…` initializes a frame, `body1_…_x…` and `body2_…_x…` run a part for one and two groups of
    lanes. `tables` are constants that they read, by name, and `shares` says whether they read shared arrays.
    """

    parts: tuple[Part, ...]
    target: Target
    operations: int
    tables: dict[str, str]
    shares: bool

    def modules(self, lanes: int) -> list[str]:
        """A module for each part: for a single state, or for all lanes of the target."""
        filled = self._single_state_code if lanes == 1 else self._wide
        return [self._declarations([part], lanes) + filled(part) + self.target.attributes for part in self.parts]

    def everything(self) -> str:
        """One module of all parts for all numbers of lanes."""
        text = self._declarations(self.parts, 1) + "".join(map(self._single_state_code, self.parts))
        if self.target.lanes > 1:
            text += self._declarations(self.parts, self.target.lanes, but=self._widths(self.parts))
            text += "".join(map(self._wide, self.parts))
        return text + self.target.attributes

    def _widths(self, parts: Iterable[Part]) -> set[int]:
        """All numbers of lanes in the code for a single state."""
        return {1, *(f.width for part in parts for f in part.functions)}

    def _declarations(self, parts: Iterable[Part], lanes: int, but: Iterable[int] = ()) -> str:
        widths = self._widths(parts) if lanes == 1 else {lanes} - set(but)
        once = () if but else (*self._tables_of(parts), *([ONE_IN_MEMORY] if self.shares else []))
        text = "".join(fill_in(line, 1, self.target.precision) for line in once)
        for width in sorted(widths):
            text += fill_in(DECLARATIONS + (GATHER + SCATTER if width > 1 else ""), width, self.target.precision)
        return text + (fill_in(_REDUCTION, lanes, self.target.precision) if lanes > 1 else "")

    def _tables_of(self, parts: Iterable[Part]) -> list[str]:
        """The tables that these parts read."""
        code = "".join(f.text + f.alone for part in parts for f in part.functions) if self.tables else ""
        return [text for name, text in self.tables.items() if name in code]

    def _single_state_code(self, part: Part) -> str:
        text = "".join(fill_in(f.alone, f.width, self.target.precision) for f in part.functions)
        return text + fill_in(part.body1, 1, self.target.precision)

    def _wide(self, part: Part) -> str:
        text = "".join((*(f.text for f in part.functions), part.body1, part.body2))
        return fill_in(text, self.target.lanes, self.target.precision)


def _emit_steps(
    steps: Sequence[Step],
    schedule: Schedule,
    functions: list[Function],
    target: Target,
    inside: LoopStep | None = None,
) -> list[str]:
    """A function per step, `void step(ptr frame, ptr frame)`, appended to `functions`; returns their names.

    A chunk has its frame as two arguments, one for reading and one for writing. No slot is read and written in the same
    chunk, so the two do not alias, and LLVM may order loads and stores freely. In the body of a loop, further arguments
    are the addresses of the item and of the stored results.
    """
    names = []
    wide = None if inside is None else loop_widths(inside, target)
    for step in steps:
        if isinstance(step, Chunk):
            name = f"@chunk{len(functions)}_x$X"
            item = ", ptr noalias readonly %item, ptr noalias writeonly %keep" if inside else ""
            header = f"(ptr noalias readonly %frame, ptr noalias writeonly %out{item}"
            lines = ChunkText(schedule, step, target, inside).text()
            text = scalar_text = f"define internal void {name}{header}) #0 {{\nentry:\n{lines}  ret void\n}}\n"
            if wide:
                lines = ChunkText(schedule, step, target, inside, wide).text()
                scalar_text = (
                    f"define internal void {wide.chunk_name(name)}{header}, ptr noalias readonly %scratch) #0 {{\n"
                )
                scalar_text += f"entry:\n{lines}  ret void\n}}\n"
            functions.append(Function(text, scalar_text, wide.width if wide else 1))
        elif isinstance(step, ScatterStep):
            name = f"@scatter{len(functions)}_x$X"
            text = emit_scatter_step(step, name)
            functions.append(Function(text, text))
        else:
            calls = _emit_steps(step.body.steps, step.body, functions, target, step)
            name = f"@loop{len(functions)}_x$X"
            text, inner = emit_loop_step(step, name, calls), loop_widths(step, target)
            functions.append(Function(text, emit_wide_step(step, name, calls, inner) if inner else text))
        names.append(name)
    return names


def _emit_tables(program: Program, precision: Precision) -> dict[str, str]:
    """The tables that a program reads, as constants of the module: bytes, which LLVM reads faster than numbers."""
    texts, words = {}, np.array([f"\\{byte:02X}" for byte in range(256)], "S3")
    for table in program.tables:
        data = np.frombuffer(table.rounded(precision).astype(f"<f{precision.bytes}").tobytes(), np.uint8)
        content = words[data].tobytes().decode()
        name = f"@table_{table.digest}"
        texts[name] = f'{name} = internal constant [ {data.size} x i8 ] c"{content}", align 64\n'
    return texts


def _emit_start(schedule: Schedule, target: Target) -> str:
    """`start(frame)`: stores constant outputs, which remain in the frame for all states."""
    lines = ChunkText(schedule, Chunk((), schedule.fixed), target).text()
    return f"define void @start_x$X(ptr %out) #0 {{\nentry:\n{lines}  ret void\n}}\n"


def _emit_body1(part: int, steps: list[str]) -> str:
    """`body1(frame)`: the steps of a part for one frame."""
    calls = "".join(f"  call void {name}(ptr %a, ptr %a)\n" for name in steps)
    return f"define void @body1_{part}_x$X(ptr %a) #0 {{\n{calls}  ret void\n}}\n"


def _emit_body2(part: int, steps: list[str], places: range, states: int) -> str:
    """`body2(a, b, fetch, context, ahead)`: the steps of a part for two frames, alternating.

    The code of a chunk is then fetched once for both frames: large kernels are limited by instruction fetch, not by
    arithmetic. Between the steps, `fetch(context, state, count)` prefetches the memory of the next `states` states,
    from `ahead` on, a few at a time. `places` are the indices of steps from the first one of this part to the last one
    of the kernel.
    """
    text = f"define void @body2_{part}_x$X(ptr %a, ptr %b, ptr %fetch, ptr %context, i64 %ahead) #0 {{\n"
    for c, name in zip(places, steps, strict=False):
        text += f"  call void {name}(ptr %a, ptr %a)\n  call void {name}(ptr %b, ptr %b)\n"
        first, end = states * c // places.stop, states * (c + 1) // places.stop
        if end > first:
            text += f"  %next{c} = add i64 %ahead, {first}\n"
            text += f"  call void %fetch(ptr %context, i64 %next{c}, i64 {end - first})\n"
    return text + "  ret void\n}\n"
