"""LLVM IR of a chunk: one or a few instructions for each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from delassus.compiler.backends.frame import Cursor
from delassus.compiler.backends.llvm.loop_step import Wide
from delassus.compiler.backends.llvm.philox import emit_words
from delassus.compiler.backends.llvm.placeholders import constant
from delassus.compiler.backends.llvm.words import emit_word
from delassus.compiler.backends.steps import Chunk, LoopStep, Schedule
from delassus.compiler.backends.target import Target
from delassus.compiler.functions import words
from delassus.compiler.graph.program import LOGICAL

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

_ROUNDINGS: Final = {"floor": "floor", "ceil": "ceil", "rint": "roundeven", "trunc": "trunc"}
"""LLVM's names of roundings to an integer."""

DECLARATIONS: Final = """
declare $T @llvm.fma.$N($T, $T, $T)
declare $T @llvm.sqrt.$N($T)
declare $T @llvm.fabs.$N($T)
declare $T @llvm.copysign.$N($T, $T)
""" + "".join(f"declare $T @llvm.{name}.$N($T)\n" for name in _ROUNDINGS.values())
"""The intrinsics that operations call."""

GATHER: Final = "declare $T @llvm.masked.gather.$N.v$Xp0(<$X x ptr>, i32, $B, $T)\n"
"""The intrinsic that gathers call, for more than one lane."""

ONE_IN_MEMORY: Final = "@one = internal global $E 1.0\n"
"""A factor that flushes subnormals to zero; in memory, so that LLVM does not know its value."""

_Composite: TypeAlias = "Callable[[ChunkText, list[str]], str]"


class ChunkText:
    """The instructions of one chunk; values of earlier chunks are loaded at their first use."""

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
        self.ciphers: dict[tuple[str, ...], list[str]] = {}
        self.lines: list[str] = []
        self.count = 0

    def text(self) -> str:
        """The instructions as text."""
        nodes = self.schedule.program.nodes
        computed = set(self.chunk.values)
        for value in (*self.chunk.stores, *self.chunk.keeps):
            if value not in computed:  # a constant, or a value of an earlier step
                computed.add(value)
                self.store(value)
        for value in self.chunk.values:
            node = nodes[value]
            template = _OPERATIONS.get(node[0])
            if template is not None:
                self.names[value] = self.emit(
                    template.format(*[self.names.get(a) or self.operand_name(a) for a in node[1:]])
                )
            elif node[0] in ("gather", "lookup"):
                self.names[value] = self.emit_lookup(value)
            else:
                self.names[value] = _COMPOSITES[node[0]](
                    self, [self.names.get(a) or self.operand_name(a) for a in node[1:]]
                )
            if value in self.chunk.stores or value in self.chunk.keeps:
                self.store(value)
        return "".join(self.lines)

    def emit(self, instruction: str) -> str:
        """Append an instruction; returns the name of its value."""
        name = f"%{self.count}"
        self.lines.append(f"  {name} = {instruction}\n")
        self.count += 1
        return name

    def emit_fused(self, args: list[str], negated: int) -> str:
        """a·b + c with one of the three arguments negated."""
        args[negated] = self.emit(f"fneg $T {args[negated]}")
        return self.emit(_OPERATIONS["fma"].format(*args))

    def bits(self, x: str) -> str:
        """The bit pattern of a float, as an integer."""
        return self.emit(f"bitcast $T {x} to $I")

    def bit(self, x: str, position: int) -> str:
        """One bit of the bit pattern of a float, as a boolean."""
        masked = self.emit(f"and $I {self.bits(x)}, $($W {1 << position}$)")
        return self.emit(f"icmp ne $I {masked}, $($W 0$)")

    def random_word(self, args: list[str], number: int) -> str:
        """One of four random words, computed together for a counter and a key."""
        if tuple(args) not in self.ciphers:
            self.ciphers[tuple(args)] = emit_words(self.emit, args, self.precision)
        return self.ciphers[tuple(args)][number]

    def emit_lookup(self, value: int) -> str:
        """A value from a row of slots, or an element of a table, at a valid index."""
        node = self.schedule.program.nodes[value]
        index = node[1] if node[0] == "gather" else node[2]
        position = self.emit(f"fptosi $T {self.names.get(index) or self.operand_name(index)} to $J")
        is_uniform = index in self.schedule.uniform and not self.wide
        if is_uniform:
            position = self.emit(f"$0{position}$1")
        if node[0] == "gather":
            row = self.schedule.rows[value]
            start = self.emit(f"getelementptr $T, ptr %frame, i64 {row.first}")
            if is_uniform:
                steps = self.emit(f"mul i32 {position}, {row.per_value}")
                return self.emit(f"load $T, ptr {self.emit(f'getelementptr $T, ptr {start}, i32 {steps}')}, align $A")
            steps = self.emit(f"mul $J {self.emit(f'mul $J {position}, $(i32 $X$)')}, $(i32 {row.per_value}$)")
            position = self.emit(f"add $J {steps}, $L")
            return self.emit(f"$[{self.emit(f'getelementptr $E, ptr {start}, $J {position}')}$]")
        source, shared = node[1], isinstance(node[1].table, int)
        table = self.address(self.schedule.roots[source.table]) if shared else f"@table_{source.table.digest}"
        start = self.emit(f"getelementptr $E, ptr {table}, i64 {source.first}")
        if is_uniform:
            position = self.emit(f"mul i32 {position}, {source.step}")
            entry = self.emit(f"load $E, ptr {self.emit(f'getelementptr $E, ptr {start}, i32 {position}')}, align $S")
            entry = self.emit_broadcast(entry)
        else:
            position = self.emit(f"mul $J {position}, $(i32 {source.step}$)")
            entry = self.emit(f"$[{self.emit(f'getelementptr $E, ptr {start}, $J {position}')}$]")
        return self.emit_flush(value, entry) if shared else entry

    def emit_rounding(self, kind: str, x: str) -> str:
        """A number rounded to an integer, by an instruction if there is one; otherwise LLVM would call the C library.

        Without an instruction, the sum with 2⁵² (float32: 2²³) rounds to the nearest integer, and a comparison
        determines the correction.
        """
        if self.target.rounds:
            return self.emit(f"call $T @llvm.{_ROUNDINGS[kind]}.$N($T {x})")
        size, border = self.emit(_OPERATIONS["abs"].format(x)), constant(2.0**self.precision.digits)
        start = size if kind == "trunc" else x
        digits = self.emit(f"fsub $T {self.emit(f'fadd $T {size}, {border}')}, {border}")
        signed = self.emit(f"call $T @llvm.copysign.$N($T {digits}, $T {start})")
        nearest = self.emit(f"select $B {self.emit(f'fcmp olt $T {size}, {border}')}, $T {signed}, $T {start}")
        if kind == "rint":
            return nearest
        above = self.emit(f"fcmp {'olt' if kind == 'ceil' else 'ogt'} $T {nearest}, {start}")
        step = self.emit(f"select $B {above}, $T {_ONE}, $T {_ZERO}")
        corrected = self.emit(f"{'fadd' if kind == 'ceil' else 'fsub'} $T {nearest}, {step}")
        return corrected if kind == "floor" else self.emit(f"call $T @llvm.copysign.$N($T {corrected}, $T {x})")

    def exponent(self, x: str) -> str:
        """An exponent as a float, by its bits as the last digits of 2⁵² (float32: 2²³): not every machine converts
        vectors of i64."""
        p = self.precision
        shifted = self.emit(f"lshr $I {self.bits(x)}, $($W {p.digits}$)")
        masked = self.emit(f"and $I {shifted}, $($W {p.exponents}$)")
        merged = self.emit(f"or $I {masked}, $($W {(p.bias + p.digits) << p.digits}$)")
        number = self.emit(f"bitcast $I {merged} to $T")
        return self.emit(f"fsub $T {number}, {constant(2.0**p.digits + p.bias)}")

    def scale(self, x: str, n: str) -> str:
        """A float with n added to its exponent; the last digits of the sum are those of n."""
        bits = self.bits(x)
        rounded = self.emit(f"fadd $T {n}, {constant(self.precision.rounder)}")
        digits = self.emit(f"bitcast $T {rounded} to $I")
        shifted = self.emit(f"shl $I {digits}, $($W {self.precision.digits}$)")
        total = self.emit(f"add $I {bits}, {shifted}")
        return self.emit(f"bitcast $I {total} to $T")

    def operand_name(self, value: int) -> str:
        """The name of a constant, or of a value of an earlier step, which is loaded from its slot.

        Booleans are 1.0 and 0.0 in slots.
        """
        if value <= 0:
            name = constant(self.schedule.program.constants[-value])
        else:
            name = self.emit_load(value)
            if self.schedule.program.nodes[value][0] in LOGICAL:
                name = self.emit(f"fcmp une $T {name}, {_ZERO}")
        self.names[value] = name
        return name

    def address(self, cursor: Cursor) -> str:
        """The address in a cursor."""
        if cursor not in self.addresses:
            pointer = self.emit(f"getelementptr {'$E' if self.wide else '$T'}, ptr %frame, i64 {cursor.slot}")
            self.addresses[cursor] = self.emit(f"load ptr, ptr {pointer}, align $S")
        return self.addresses[cursor]

    def emit_flush(self, value: int, name: str) -> str:
        """An element of a shared array, with subnormals flushed to zero if the next operations do not flush them."""
        if value not in self.schedule.program.bit_exact_values:
            return name
        self.one = self.one or self.emit_broadcast(self.emit("load $E, ptr @one, align $S"))
        return self.emit(f"fmul $T {name}, {self.one}")

    def emit_broadcast(self, name: str) -> str:
        """A number in all lanes."""
        return self.emit(f"$>{self.emit(f'$<{name}$;')}$:")

    def emit_load(self, value: int) -> str:
        """A value from the item or from a slot; in wide code, values that iterations share are broadcast."""
        if value in self.schedule.shared:
            cursor, offset = self.schedule.shared[value]
            pointer = self.emit(f"getelementptr $E, ptr {self.address(cursor)}, i64 {offset}")
            if self.wide and self.inside and any(cursor == is_item for _, _, is_item in self.inside.cursors):
                return self.emit_flush(value, self.emit(f"load $T, ptr {pointer}, align $S"))
            return self.emit_flush(value, self.emit_broadcast(self.emit(f"load $E, ptr {pointer}, align $S")))
        if value in self.schedule.direct and self.inside:
            source = f"%item, i64 {self.schedule.direct[value] * self.inside.items.per_value}"
            is_item = True
        else:
            slot, is_item = self.schedule.slots[value], self.schedule.program.nodes[value][0] != "input"
            source = f"%scratch, i64 {self.wide.scratch[slot]}" if self.wide and is_item else f"%frame, i64 {slot}"
        if not self.wide or source.startswith("%scratch"):
            return self.emit(f"load $T, ptr {self.emit(f'getelementptr $T, ptr {source}')}, align $A")
        pointer = self.emit(f"getelementptr $E, ptr {source}")
        if is_item:
            return self.emit(f"load $T, ptr {pointer}, align $S")
        return self.emit_broadcast(self.emit(f"load $E, ptr {pointer}, align $S"))

    def store(self, value: int) -> None:
        """Store a value in its slots and results."""
        name = self.names.get(value) or self.operand_name(value)
        if self.schedule.program.is_logical(value):
            name = self.emit(f"select $B {name}, $T {_ONE}, $T {_ZERO}")
        slots = self.chunk.stores.get(value, ())
        places = [f"%out, i64 {self.wide.scratch[slot] if self.wide else slot}" for slot in slots]
        self.emit_stores(name, "$T", places, "$A")
        if self.inside:
            step = self.inside.kept.per_value
            places = [f"%keep, i64 {k * step}" for k in self.chunk.keeps.get(value, ())]
            self.emit_stores(name, *(("$E", places, "$S") if self.wide else ("$T", places, "$A")))

    def emit_stores(self, name: str, unit: str, places: list[str], alignment: str) -> None:
        """Store a value at places, which are offsets in units of the type `unit`."""
        for target in places:
            pointer = self.emit(f"getelementptr {unit}, ptr {target}")
            self.lines.append(f"  store $T {name}, ptr {pointer}, align {alignment}\n")


def _rounding(kind: str) -> _Composite:
    return lambda chunk, args: chunk.emit_rounding(kind, args[0])


def _word_operation(kind: str) -> _Composite:
    return lambda chunk, args: emit_word(chunk.emit, kind, args)


def _random_word(number: int) -> _Composite:
    return lambda chunk, args: chunk.random_word(args, number)


_COMPOSITES: Final[dict[str, _Composite]] = {
    "fms": lambda chunk, args: chunk.emit_fused(args, 2),
    "fnma": lambda chunk, args: chunk.emit_fused(args, 0),
    "bit0": lambda chunk, args: chunk.bit(args[0], 0),
    "bit1": lambda chunk, args: chunk.bit(args[0], 1),
    "exponent": lambda chunk, args: chunk.exponent(args[0]),
    "scale": lambda chunk, args: chunk.scale(args[0], args[1]),
    **{kind: _rounding(kind) for kind in _ROUNDINGS},
    **{f"philox{k}": _random_word(k) for k in range(4)},
    **{kind: _word_operation(kind) for kind in words.OPERATIONS},
}
"""Operations of several instructions."""

OPERATIONS: Final = _OPERATIONS.keys() | _COMPOSITES.keys()
"""All machine operations of this back end."""
