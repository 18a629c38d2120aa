"""Emits the chunks of a schedule as LLVM IR text.

The text is written once, with marks where the number of lanes matters, and filled in for each width: one state per
lane, so the scalar and the vector versions differ in nothing but their types and compute the same bits. Values are
numbered, not named, which LLVM reads fastest. LLVM's verifier reads it all before anything runs.

There is one exception: a single state leaves the vector registers empty, so that the executions of a `map` take the
lanes there. These are the same operations on the same numbers, and give the same bits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from delassus.compiler.llvm_loop import Wide, emit_loop_step, emit_wide_step, widened
from delassus.compiler.precision import Precision
from delassus.compiler.program import LOGICAL
from delassus.compiler.schedule import Chunk, LoopStep, Schedule, count_operations
from delassus.compiler.target import Target
from delassus.errors import DelassusError

LARGEST_FRAME: Final = 128 * 1024  # slots: one megabyte for one state
PART: Final = 1500  # operations of a part at least: less is not worth a module of its own
MOST_PARTS: Final = 16

# Marks: $T type of a value, $B of a truth value, $I of an integer as wide as a value, $E and $W the types of a value
# and of such an integer in one lane, $N suffix of intrinsics, $A alignment of a slot, $S bytes of a value in one lane,
# $X lanes; $ANY[ and $ANY] enclose a truth value, for whether it holds in any lane; $( and $) enclose a constant that
# goes into every lane, its type in front.
_OPERATIONS: Final = {
    "add": "fadd $T {0}, {1}",
    "sub": "fsub $T {0}, {1}",
    "mul": "fmul $T {0}, {1}",
    "div": "fdiv $T {0}, {1}",
    "neg": "fneg $T {0}",
    "sqrt": "call $T @llvm.sqrt.$N($T {0})",
    "abs": "call $T @llvm.fabs.$N($T {0})",
    "fma": "call $T @llvm.fma.$N($T {0}, $T {1}, $T {2})",
    "lt": "fcmp olt $T {0}, {1}",
    "le": "fcmp ole $T {0}, {1}",
    "eq": "fcmp oeq $T {0}, {1}",
    "ne": "fcmp une $T {0}, {1}",
    "and": "and $B {0}, {1}",
    "xor": "xor $B {0}, {1}",
    "not": "xor $B {0}, $(i1 true$)",
    "select": "select $B {0}, $T {1}, $T {2}",
}
"""Operations that are one instruction."""

_ZERO: Final = "$($E 0.0$)"
_ONE: Final = "$($E 1.0$)"

_DECLARATIONS: Final = """
declare $T @llvm.fma.$N($T, $T, $T)
declare $T @llvm.sqrt.$N($T)
declare $T @llvm.fabs.$N($T)
"""

_REDUCTION: Final = "declare i1 @llvm.vector.reduce.or.v$Xi1($B)\n"


def fill_in(text: str, lanes: int, precision: Precision) -> str:
    """Text with marks, for one number of lanes and one precision."""
    scalar = lanes == 1
    real, bits = "double" if precision.bytes == 8 else "float", 8 * precision.bytes
    if scalar:
        for kind in ("$E", "i1", "$W"):
            text = text.replace(f"$({kind} ", "")
    for mark, filling in (
        ("$ANY[", "and i1 true, " if scalar else "call i1 @llvm.vector.reduce.or.v$Xi1($B "),
        ("$ANY]", "" if scalar else ")"),
        ("$T", real if scalar else f"<{lanes} x {real}>"),
        ("$B", "i1" if scalar else f"<{lanes} x i1>"),
        ("$I", f"i{bits}" if scalar else f"<{lanes} x i{bits}>"),
        ("$E", real),
        ("$W", f"i{bits}"),
        ("$N", f"f{bits}" if scalar else f"v{lanes}f{bits}"),
        ("$A", str(precision.bytes * lanes)),
        ("$S", str(precision.bytes)),
        ("$X", str(lanes)),
        ("$(", "splat ("),
        ("$)", "" if scalar else ")"),
    ):
        text = text.replace(mark, filling)
    return text


def check_frame(schedule: Schedule) -> None:
    """Refuse a frame that is too large."""
    if schedule.frame > LARGEST_FRAME:
        raise DelassusError(
            f"the kernel keeps {schedule.frame} values alive at once, at most {LARGEST_FRAME} are possible: "
            "split it, or make its arrays smaller."
        )


def emit_template(schedule: Schedule, target: Target) -> Template:
    """The code of a kernel, to be filled in for one state or for many."""
    check_frame(schedule)
    functions: list[Function] = []
    ends, calls = [], []
    for step in schedule.steps:
        calls += _emit_steps((step,), schedule, functions, target)
        ends.append(len(functions))
    parts, first = [], 0
    for k, steps in enumerate(_shared_out(schedule)):
        own, done = calls[steps.start : steps.stop], ends[steps.stop - 1]
        body = _emit_start(schedule, target.precision) if k == 0 else ""
        bodies = body + _emit_body1(k, own), _emit_body2(k, own, range(steps.start, len(calls)), 2 * target.lanes)
        parts.append(Part(tuple(functions[first:done]), *bodies))
        first = done
    return Template(tuple(parts), target, sum(map(count_operations, schedule.steps)))


def emit_module(schedule: Schedule, target: Target) -> str:
    """All the code of a kernel in one module, for reading."""
    return emit_template(schedule, target).everything()


def _shared_out(schedule: Schedule) -> list[range]:
    """The steps of a schedule, cut into ranges that take LLVM about as long as each other."""
    sizes = [count_operations(step) for step in schedule.steps]
    total = sum(sizes)
    number = max(1, min(MOST_PARTS, total // PART, len(sizes)))
    ranges: list[range] = []
    first = done = 0
    for k, size in enumerate(sizes):
        done += size
        last = k + 1 == len(sizes)
        if last or (done * number >= total * (len(ranges) + 1) and len(ranges) + 1 < number):
            ranges.append(range(first, k + 1))
            first = k + 1
    return ranges


@dataclass(frozen=True)
class Function:
    """The text of a function, with marks; and the one for a single state, in so many lanes."""

    text: str
    alone: str
    width: int = 1


@dataclass(frozen=True)
class Part:
    """Some steps of a kernel that follow each other, and what calls them: for one group of lanes, and for two."""

    functions: tuple[Function, ...]
    body1: str
    body2: str


@dataclass(frozen=True)
class Template:
    """The code of a kernel as text with marks, in parts that LLVM can compile apart from each other.

    `start_x…` makes a new frame, `body1_…_x…` and `body2_…_x…` are the parts for one and two groups of lanes.
    """

    parts: tuple[Part, ...]
    target: Target
    operations: int

    def modules(self, lanes: int) -> list[str]:
        """A module for each part: for a single state, or for as many as the target has lanes."""
        filled = self._alone if lanes == 1 else self._wide
        return [self._declared([part], lanes) + filled(part) + self.target.attributes for part in self.parts]

    def everything(self) -> str:
        """One module of all parts for all numbers of lanes."""
        text = self._declared(self.parts, 1) + "".join(map(self._alone, self.parts))
        if self.target.lanes > 1:
            text += self._declared(self.parts, self.target.lanes, but=self._widths(self.parts))
            text += "".join(map(self._wide, self.parts))
        return text + self.target.attributes

    def _widths(self, parts: Iterable[Part]) -> set[int]:
        """The numbers of lanes in the code for a single state."""
        return {1, *(f.width for part in parts for f in part.functions)}

    def _declared(self, parts: Iterable[Part], lanes: int, but: Iterable[int] = ()) -> str:
        widths = self._widths(parts) if lanes == 1 else {lanes} - set(but)
        text = "".join(fill_in(_DECLARATIONS, width, self.target.precision) for width in sorted(widths))
        return text + (fill_in(_REDUCTION, lanes, self.target.precision) if lanes > 1 else "")

    def _alone(self, part: Part) -> str:
        text = "".join(fill_in(f.alone, f.width, self.target.precision) for f in part.functions)
        return text + fill_in(part.body1, 1, self.target.precision)

    def _wide(self, part: Part) -> str:
        text = "".join((*(f.text for f in part.functions), part.body1, part.body2))
        return fill_in(text, self.target.lanes, self.target.precision)


def _emit_steps(
    steps: Sequence[Chunk | LoopStep],
    schedule: Schedule,
    functions: list[Function],
    target: Target,
    inside: LoopStep | None = None,
) -> list[str]:
    """A function per chunk and per loop, `void step(ptr frame, ptr frame)`, appended to `functions`; returns names.

    A chunk gets its frame twice, as a place to read and as a place to write. No slot is read and written in the
    same chunk, so the two never alias, and LLVM may order loads and stores freely. In the body of a loop it also gets
    the addresses of its item and of what is kept.
    """
    names = []
    wide = None if inside is None else widened(inside, target)
    for step in steps:
        if isinstance(step, Chunk):
            name = f"@chunk{len(functions)}_x$X"
            item = ", ptr noalias readonly %item, ptr noalias writeonly %keep" if inside else ""
            header = f"(ptr noalias readonly %frame, ptr noalias writeonly %out{item}"
            lines = _Chunk(schedule, step, target.precision, inside).text()
            text = alone = f"define internal void {name}{header}) #0 {{\nentry:\n{lines}  ret void\n}}\n"
            if wide:
                lines = _Chunk(schedule, step, target.precision, inside, wide).text()
                alone = f"define internal void {wide.named(name)}{header}, ptr noalias readonly %scratch) #0 {{\n"
                alone += f"entry:\n{lines}  ret void\n}}\n"
            functions.append(Function(text, alone, wide.width if wide else 1))
        else:
            calls = _emit_steps(step.body.steps, step.body, functions, target, step)
            name = f"@loop{len(functions)}_x$X"
            text, inner = emit_loop_step(step, name, calls), widened(step, target)
            functions.append(Function(text, emit_wide_step(step, name, calls, inner) if inner else text))
        names.append(name)
    return names


def _emit_start(schedule: Schedule, precision: Precision) -> str:
    """`start(frame)`: outputs that are constants, which stay in a frame for all the states that pass through it."""
    lines = _Chunk(schedule, Chunk((), schedule.fixed), precision).text()
    return f"define void @start_x$X(ptr %out) #0 {{\nentry:\n{lines}  ret void\n}}\n"


def _emit_body1(part: int, steps: list[str]) -> str:
    """`body1(frame)`: the steps of a part for one frame."""
    calls = "".join(f"  call void {name}(ptr %a, ptr %a)\n" for name in steps)
    return f"define void @body1_{part}_x$X(ptr %a) #0 {{\n{calls}  ret void\n}}\n"


def _emit_body2(part: int, steps: list[str], places: range, states: int) -> str:
    """`body2(a, b, fetch, context, ahead)`: the steps of a part for two frames that take turns.

    So the code of a chunk is fetched once for both: large kernels are limited by the fetching of their code, not by
    arithmetic. Between the steps, `fetch(context, state, count)` asks for the memory of the next `states` states,
    from `ahead` on, a few at a time, at a pace that the memory can follow; `places` are those of the steps, from the
    first of this part to the last of all.
    """
    text = f"define void @body2_{part}_x$X(ptr %a, ptr %b, ptr %fetch, ptr %context, i64 %ahead) #0 {{\n"
    for c, name in zip(places, steps, strict=False):
        text += f"  call void {name}(ptr %a, ptr %a)\n  call void {name}(ptr %b, ptr %b)\n"
        first, end = states * c // places.stop, states * (c + 1) // places.stop
        if end > first:
            text += f"  %next{c} = add i64 %ahead, {first}\n"
            text += f"  call void %fetch(ptr %context, i64 %next{c}, i64 {end - first})\n"
    return text + "  ret void\n}\n"


def _constant(number: float) -> str:
    """A constant for every lane; LLVM wants the bits of a double also for a float."""
    if isinstance(number, bool):
        return f"$(i1 {str(number).lower()}$)"
    return f"$($E 0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}$)"


class _Chunk:
    """The instructions of one chunk: values of earlier chunks are loaded where they are first used."""

    def __init__(
        self,
        schedule: Schedule,
        chunk: Chunk,
        precision: Precision,
        inside: LoopStep | None = None,
        wide: Wide | None = None,
    ) -> None:
        self.schedule = schedule
        self.chunk = chunk
        self.precision = precision
        self.inside = inside
        self.wide = wide
        self.names: dict[int, str] = {}
        self.lines: list[str] = []
        self.count = 0

    def text(self) -> str:
        nodes = self.schedule.program.nodes
        own = set(self.chunk.values)
        for value in (*self.chunk.stores, *self.chunk.keeps):
            if value not in own:  # a constant, or a value of an earlier step
                own.add(value)
                self.store(value)
        for value in self.chunk.values:
            node = nodes[value]
            args = [self.names.get(a) or self.known(a) for a in node[1:]]
            template = _OPERATIONS.get(node[0])
            self.names[value] = self.composite(node[0], args) if template is None else self.emit(template.format(*args))
            if value in self.chunk.stores or value in self.chunk.keeps:
                self.store(value)
        return "".join(self.lines)

    def emit(self, instruction: str) -> str:
        """Append an instruction; returns the name of its value."""
        name = f"%{self.count}"
        self.lines.append(f"  {name} = {instruction}\n")
        self.count += 1
        return name

    def composite(self, kind: str, args: list[str]) -> str:
        """An operation of several instructions."""
        if kind in ("fms", "fnma"):
            flipped = 2 if kind == "fms" else 0
            args[flipped] = self.emit(f"fneg $T {args[flipped]}")
            return self.emit(_OPERATIONS["fma"].format(*args))
        bits = self.emit(f"bitcast $T {args[0]} to $I")
        if kind == "exponent":
            return self.exponent(bits)
        if kind == "scale":
            return self.scale(bits, args[1])
        masked = self.emit(f"and $I {bits}, $($W {1 << int(kind.removeprefix('bit'))}$)")
        return self.emit(f"icmp ne $I {masked}, $($W 0$)")

    def exponent(self, bits: str) -> str:
        """An exponent as a float: put into 2⁵² (float32: 2²³) as its last digits, since not every machine converts
        vectors of i64."""
        p = self.precision
        shifted = self.emit(f"lshr $I {bits}, $($W {p.digits}$)")
        masked = self.emit(f"and $I {shifted}, $($W {p.exponents}$)")
        merged = self.emit(f"or $I {masked}, $($W {(p.bias + p.digits) << p.digits}$)")
        number = self.emit(f"bitcast $I {merged} to $T")
        return self.emit(f"fsub $T {number}, {_constant(2.0**p.digits + p.bias)}")

    def scale(self, bits: str, n: str) -> str:
        """The bits of a float with n added to its exponent; the last digits of the sum are those of n."""
        rounded = self.emit(f"fadd $T {n}, {_constant(self.precision.rounder)}")
        digits = self.emit(f"bitcast $T {rounded} to $I")
        shifted = self.emit(f"shl $I {digits}, $($W {self.precision.digits}$)")
        total = self.emit(f"add $I {bits}, {shifted}")
        return self.emit(f"bitcast $I {total} to $T")

    def known(self, value: int) -> str:
        """The name of a constant, or of a value of an earlier step, which is taken from its slot.

        Truth values are 1.0 and 0.0 in slots.
        """
        if value <= 0:
            name = _constant(self.schedule.program.constants[-value])
        else:
            name = self.loaded(value)
            if self.schedule.program.nodes[value][0] in LOGICAL:
                name = self.emit(f"fcmp une $T {name}, {_ZERO}")
        self.names[value] = name
        return name

    def loaded(self, value: int) -> str:
        """A value from the item or from a slot. Executions that are side by side share what is not their own."""
        if value in self.schedule.direct and self.inside:
            source = f"%item, i64 {self.schedule.direct[value] * self.inside.items.per_value}"
            own = True
        else:
            slot, own = self.schedule.slots[value], self.schedule.program.nodes[value][0] != "input"
            source = f"%scratch, i64 {self.wide.scratch[slot]}" if self.wide and own else f"%frame, i64 {slot}"
        if not self.wide or source.startswith("%scratch"):
            return self.emit(f"load $T, ptr {self.emit(f'getelementptr $T, ptr {source}')}, align $A")
        place = self.emit(f"getelementptr $E, ptr {source}")
        if own:
            return self.emit(f"load $T, ptr {place}, align $S")
        first = self.emit(f"insertelement $T poison, $E {self.emit(f'load $E, ptr {place}, align $S')}, i64 0")
        return self.emit(f"shufflevector $T {first}, $T poison, <$X x i32> zeroinitializer")

    def store(self, value: int) -> None:
        """Put a value into its places."""
        name = self.names.get(value) or self.known(value)
        if self.schedule.program.is_logical(value):
            name = self.emit(f"select $B {name}, $T {_ONE}, $T {_ZERO}")
        slots = self.chunk.stores.get(value, ())
        places = [f"%out, i64 {self.wide.scratch[slot] if self.wide else slot}" for slot in slots]
        self.put(name, "$T", places, "$A")
        if self.inside:
            step = self.inside.kept.per_value
            places = [f"%keep, i64 {k * step}" for k in self.chunk.keeps.get(value, ())]
            self.put(name, *(("$E", places, "$S") if self.wide else ("$T", places, "$A")))

    def put(self, name: str, unit: str, places: list[str], alignment: str) -> None:
        """Stores of a value; places are counted in a unit."""
        for target in places:
            place = self.emit(f"getelementptr {unit}, ptr {target}")
            self.lines.append(f"  store $T {name}, ptr {place}, align {alignment}\n")
