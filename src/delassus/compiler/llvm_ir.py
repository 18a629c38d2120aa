"""Emits the chunks of a schedule as LLVM IR text.

The text is written once, with marks where the number of lanes matters, and filled in for each width: one state per
lane, so the scalar and the vector versions differ in nothing but their types and compute the same bits. Values are
numbered, not named, which LLVM reads fastest. LLVM's verifier reads it all before anything runs.

There is one exception: a single state leaves the vector registers empty, so that the executions of a `map` take the
lanes there. These are the same operations on the same numbers, and give the same bits.
"""

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from delassus.compiler.frame import Cursor
from delassus.compiler.llvm_loop import Wide, emit_loop_step, emit_wide_step, widened
from delassus.compiler.precision import Precision
from delassus.compiler.program import LOGICAL, Program
from delassus.compiler.schedule import Chunk, LoopStep, Schedule
from delassus.compiler.target import Target
from delassus.errors import DelassusError

LARGEST_FRAME: Final = 128 * 1024  # slots: one megabyte for one state

# Marks: $T type of a value, $B of a truth value, $I of an integer as wide as a value, $E and $W the types of a value
# and of such an integer in one lane, $N suffix of intrinsics, $A alignment of a slot, $S bytes of a value in one lane,
# $X lanes, $J type of a position, $L the numbers of the lanes; $ANY and $? enclose what holds in any lane; $( and $)
# a constant that goes into every lane, its type in front; $[ and $] addresses that values are loaded from; $< and $; a
# number that goes into the first lane, and $> and $: one that goes from there into all: of a single state, it stays.
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

_ONE_IN_MEMORY: Final = "@one = internal global $E 1.0\n"
"""A factor that LLVM must not know: the product with it makes subnormals zero."""

_WHOLE: Final = {"floor": "floor", "ceil": "ceil", "rint": "roundeven", "trunc": "trunc"}
"""LLVM's names of the ways to round to a whole number."""

_DECLARATIONS: Final = """
declare $T @llvm.fma.$N($T, $T, $T)
declare $T @llvm.sqrt.$N($T)
declare $T @llvm.fabs.$N($T)
declare $T @llvm.copysign.$N($T, $T)
""" + "".join(f"declare $T @llvm.{name}.$N($T)\n" for name in _WHOLE.values())

_GATHER: Final = "declare $T @llvm.masked.gather.$N.v$Xp0(<$X x ptr>, i32, $B, $T)\n"
_REDUCTION: Final = "declare i1 @llvm.vector.reduce.or.v$Xi1($B)\n"


def fill_in(text: str, lanes: int, precision: Precision) -> str:
    """Text with marks, for one number of lanes and one precision."""
    scalar = lanes == 1
    real, bits = "double" if precision.bytes == 8 else "float", 8 * precision.bytes
    if scalar:
        for kind in ("$E", "i1", "i32", "$W"):
            text = text.replace(f"$({kind} ", "")
    for mark, filling in (
        ("$ANY", "and i1 true, " if scalar else "call i1 @llvm.vector.reduce.or.v$Xi1($B "),
        ("$?", "" if scalar else ")"),
        ("$<", "select i1 false, $E 0.0, $E " if scalar else "insertelement $T poison, $E "),
        ("$;", "" if scalar else ", i64 0"),
        ("$>", "select i1 false, $E 0.0, $E " if scalar else "shufflevector $T "),
        ("$:", "" if scalar else ", $T poison, <$X x i32> zeroinitializer"),
        ("$[", "load $T, ptr " if scalar else "call $T @llvm.masked.gather.$N.v$Xp0(<$X x ptr> "),
        ("$]", ", align $S" if scalar else ", i32 $S, $B splat (i1 true), $T poison)"),
        ("$J", "i32" if scalar else "<$X x i32>"),
        ("$L", "0" if scalar else f"<{', '.join(f'i32 {k}' for k in range(lanes))}>"),
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
    text += fill_in((_ONE_IN_MEMORY if schedule.roots else "") + _DECLARATIONS, 1, target.precision)
    text += "".join(fill_in(_DECLARATIONS + _GATHER, lanes, target.precision) for lanes in sorted(widths))
    text += "".join(fill_in(f.alone, f.width, target.precision) for f in functions)
    text += fill_in(start + body, 1, target.precision)
    if target.lanes > 1:
        parts = [_DECLARATIONS, _GATHER, *(f.text for f in functions), start, body, _REDUCTION]
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
            lines = _Chunk(schedule, step, target, inside).text()
            text = alone = f"define internal void {name}{header}) #0 {{\nentry:\n{lines}  ret void\n}}\n"
            if wide:
                lines = _Chunk(schedule, step, target, inside, wide).text()
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
    lines = _Chunk(schedule, Chunk((), schedule.fixed), target).text()
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
        target: Target,
        inside: LoopStep | None = None,
        wide: Wide | None = None,
    ) -> None:
        self.schedule = schedule
        self.chunk = chunk
        self.target = target
        self.precision = target.precision
        self.inside = inside
        self.wide = wide
        self.names: dict[int, str] = {}
        self.addresses: dict[Cursor, str] = {}
        self.one = ""
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
            template = _OPERATIONS.get(node[0])
            if template is not None:
                self.names[value] = self.emit(template.format(*[self.names.get(a) or self.known(a) for a in node[1:]]))
            elif node[0] in ("gather", "lookup"):
                self.names[value] = self.found(value)
            else:
                self.names[value] = self.composite(node[0], [self.names.get(a) or self.known(a) for a in node[1:]])
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
        if kind in _WHOLE:
            return self.whole(kind, args[0])
        bits = self.emit(f"bitcast $T {args[0]} to $I")
        if kind == "exponent":
            return self.exponent(bits)
        if kind == "scale":
            return self.scale(bits, args[1])
        masked = self.emit(f"and $I {bits}, $($W {1 << int(kind.removeprefix('bit'))}$)")
        return self.emit(f"icmp ne $I {masked}, $($W 0$)")

    def found(self, value: int) -> str:
        """A value of a row of slots, or a number of a table, at an index that is not outside."""
        node = self.schedule.program.nodes[value]
        index = node[1] if node[0] == "gather" else node[2]
        place = self.emit(f"fptosi $T {self.names.get(index) or self.known(index)} to $J")
        if node[0] == "gather":
            row = self.schedule.rows[value]
            steps = self.emit(f"mul $J {self.emit(f'mul $J {place}, $(i32 $X$)')}, $(i32 {row.per_value}$)")
            start, place = f"getelementptr $T, ptr %frame, i64 {row.first}", self.emit(f"add $J {steps}, $L")
        else:
            source, shared = node[1], isinstance(node[1].table, int)
            table = self.address(self.schedule.roots[source.table]) if shared else f"@table_{source.table.digest}"
            start = f"getelementptr $E, ptr {table}, i64 {source.first}"
            place = self.emit(f"mul $J {place}, $(i32 {source.step}$)")
        found = self.emit(f"$[{self.emit(f'getelementptr $E, ptr {self.emit(start)}, $J {place}')}$]")
        return self.flushed(value, found) if node[0] == "lookup" and shared else found

    def whole(self, kind: str, x: str) -> str:
        """A number rounded to a whole one, by an instruction if there is one: LLVM would else call the C library.

        Without, the sum with 2⁵² (float32: 2²³) rounds to the nearest, and a comparison tells which way that was.
        """
        if self.target.rounds:
            return self.emit(f"call $T @llvm.{_WHOLE[kind]}.$N($T {x})")
        size, border = self.emit(_OPERATIONS["abs"].format(x)), _constant(2.0**self.precision.digits)
        start = size if kind == "trunc" else x
        digits = self.emit(f"fsub $T {self.emit(f'fadd $T {size}, {border}')}, {border}")
        signed = self.emit(f"call $T @llvm.copysign.$N($T {digits}, $T {start})")
        nearest = self.emit(f"select $B {self.emit(f'fcmp olt $T {size}, {border}')}, $T {signed}, $T {start}")
        if kind == "rint":
            return nearest
        above = self.emit(f"fcmp {'olt' if kind == 'ceil' else 'ogt'} $T {nearest}, {start}")
        step = self.emit(f"select $B {above}, $T {_ONE}, $T {_ZERO}")
        moved = self.emit(f"{'fadd' if kind == 'ceil' else 'fsub'} $T {nearest}, {step}")
        return moved if kind == "floor" else self.emit(f"call $T @llvm.copysign.$N($T {moved}, $T {x})")

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

    def address(self, cursor: Cursor) -> str:
        """The address that a cursor holds."""
        if cursor not in self.addresses:
            place = self.emit(f"getelementptr {'$E' if self.wide else '$T'}, ptr %frame, i64 {cursor.slot}")
            self.addresses[cursor] = self.emit(f"load ptr, ptr {place}, align $S")
        return self.addresses[cursor]

    def flushed(self, value: int, name: str) -> str:
        """A number of a shared array: zero for a subnormal one, where that is not arithmetic's own doing."""
        if value not in self.schedule.program.exposed:
            return name
        self.one = self.one or self.spread(self.emit("load $E, ptr @one, align $S"))
        return self.emit(f"fmul $T {name}, {self.one}")

    def spread(self, name: str) -> str:
        """A number in all lanes."""
        return self.emit(f"$>{self.emit(f'$<{name}$;')}$:")

    def loaded(self, value: int) -> str:
        """A value from the item or from a slot. Executions that are side by side share what is not their own."""
        if value in self.schedule.shared:
            cursor, offset = self.schedule.shared[value]
            place = self.emit(f"getelementptr $E, ptr {self.address(cursor)}, i64 {offset}")
            if self.wide and self.inside and any(cursor == own for _, _, own in self.inside.cursors):
                return self.flushed(value, self.emit(f"load $T, ptr {place}, align $S"))
            return self.flushed(value, self.spread(self.emit(f"load $E, ptr {place}, align $S")))
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
        return self.spread(self.emit(f"load $E, ptr {place}, align $S"))

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
