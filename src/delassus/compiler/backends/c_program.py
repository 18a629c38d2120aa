"""Emits a program as C99: a header and a source file that need math.h, string.h and stdint.h only.

The text follows the schedule, like the LLVM back end: a static function for each chunk, and an array of slots on the
stack for values that cross chunks. One operation per statement, fused operations as calls of fma() or fmaf(), and
constants as hexadecimal floats leave a conforming compiler no freedom, so the bits are those of the interpreter. Inputs
are copied into the slots first and outputs from them last, so that an output may be one of the inputs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delassus.compiler.backends.c_text import (
    CHECK,
    HELPERS,
    OPERATIONS,
    PREAMBLE,
    REAL,
    c_name,
    comment_line,
    in_precision,
    literal,
)
from delassus.compiler.backends.frame import LARGEST_ON_STACK, Table
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import CHUNK, schedule
from delassus.compiler.backends.steps import Chunk, LoopStep, ScatterStep, Schedule, count_chunks, first_slots
from delassus.compiler.functions.lower import flops, lower
from delassus.compiler.graph.precision import Precision
from delassus.compiler.graph.program import Operand, Program, field_name, output_name
from delassus.compiler.graph.tables import Constants
from delassus.errors import BadArgument, DelassusError


def emit_c(
    program: Program,
    name: str,
    fma: bool = True,
    *,
    about: str = "",
    chunk: int = CHUNK,
    dtype: DTypeLike = np.float64,
) -> tuple[str, str]:
    """The texts of `name.h` and `name.c`.

    Args:
        program: The program.
        name: The name of the C function.
        fma: Whether products are fused into sums.
        about: Text for the comment of the header.
        chunk: The number of operations in one C function.
        dtype: The type of all numbers.
    """
    name, precision = c_name(name, "the function", function=True), Precision.of(dtype)
    plan = schedule(lower(program, fma, precision), chunk)
    if plan.frame > LARGEST_ON_STACK:
        raise DelassusError(
            f"{name} needs memory for {plan.frame} values at once; the limit is {LARGEST_ON_STACK}. Split it, or make "
            "its arrays smaller.",
            code="kernel-too-large",
        )
    return _header(plan, name, about, program.digest, precision), _source(plan, name, precision)


def parameters(program: Program) -> tuple[list[str], list[str]]:
    """The names of inputs and outputs in C."""
    inputs = [c_name(operand.name, "the argument") for operand in program.inputs]
    outputs = [
        f"out{k}" if operand.name == output_name(k) else c_name(f"out_{operand.name}", "the result")
        for k, operand in enumerate(program.outputs)
    ]
    for k, name in enumerate(inputs):
        if name in inputs[:k] or name in outputs:
            raise BadArgument(f"two arguments have the same name {name!r} in C: rename one of them.", code="bad-c-name")
    return inputs, outputs


def _prototype(program: Program, name: str, precision: Precision) -> str:
    inputs, outputs = parameters(program)
    real = REAL[precision]
    return f"void {name}({', '.join([f'const {real} *{n}' for n in inputs] + [f'{real} *{n}' for n in outputs])})"


def _size_text(operand: Operand) -> str:
    """The size of an operand, and of its fields, in order."""
    fields = [(field_name(operand.name, field), " x ".join(map(str, shape)) or "1") for field, shape in operand.fields]
    field_text = f": {', '.join(f'{name} {size}' for name, size in fields)}" if fields else ""
    return (" x ".join(map(str, operand.shape)) or "one number") + field_text


def _header(plan: Schedule, name: str, about: str, digest: str, precision: Precision) -> str:
    program, stack = plan.program, precision.bytes * plan.frame
    inputs, outputs = parameters(program)
    operands = list(zip(inputs + outputs, (*program.inputs, *program.outputs), strict=True))
    lines = [comment_line(line) for line in about.strip().splitlines()]
    shapes = [_size_text(o) for _, o in operands]
    directions = ["in place" if o.shared else "in" for o in program.inputs] + ["out"] * len(outputs)
    lines += [
        "",
        *(
            f"  {n:12} {w:{max(map(len, directions))}}  {s}"
            for (n, _), w, s in zip(operands, directions, shapes, strict=True)
        ),
        "",
    ]
    lines += [
        f"{sum(program.count().values())} operations ({flops(program)} flops) in {count_chunks(plan)} function(s).",
        "Re-entrant, without heap and global state. An output may be the same array as an input"
        + (", but not as one that is read in place." if plan.roots else "."),
        f"Stack: {stack} bytes for values between functions, and what the compiler takes for one of them.",
        "Matrices are stored row by row. For the bits of delassus, compile with -std=c99 -ffp-contract=off.",
        f"Program {digest}.",
    ]
    comment = "\n".join(f" * {line}".rstrip() for line in [f"{name}: made by delassus, not to be edited.", *lines])
    sizes = [f"    {name}_{n}_size = {o.size}," for n, o in operands]
    return (
        f"/*\n{comment}\n */\n#ifndef DELASSUS_{name}_H\n#define DELASSUS_{name}_H\n\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n'
        f"enum {{\n" + "\n".join(sizes) + f"\n    {name}_stack_bytes = {stack}\n}};\n\n"
        f"{_prototype(program, name, precision)};\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
    )


def _source(plan: Schedule, name: str, precision: Precision) -> str:
    program, frame = plan.program, "slots"
    inputs, outputs = parameters(program)
    while frame in inputs:
        frame += "_"
    cursors = "cursors"
    while cursors in inputs:
        cursors += "_"
    functions: list[str] = []
    kind = "static void" if len(plan.steps) == count_chunks(plan) == 1 else f"{name}_CHUNK"
    calls = _functions(plan, name, kind, precision, functions)
    starts = first_slots((*program.inputs, *program.outputs))
    into = list(zip(inputs, program.inputs, starts, strict=False))
    out = list(zip(outputs, program.outputs, starts[len(inputs) :], strict=True))
    body = [f"@T {frame}[{max(plan.frame, 1)}];"]
    body += [f"const @T *{cursors}[{plan.cursors}];"] if plan.cursors else []
    body += [f"(void){n};" for n, o, _ in (*into, *out) if not o.size]
    body += [f"memcpy({frame} + {k}, {n}, {o.size} * sizeof(@T));" for n, o, k in into if o.size and not o.shared]
    body += [f"{cursors}[{cursor.number}] = {inputs[k]};" for k, cursor in plan.roots.items()]
    constants = [(slot, literal(program.constants[-v], precision)) for v, slots in plan.fixed.items() for slot in slots]
    body += [f"{frame}[{slot}] = {value};" for slot, value in constants]
    body += [call.replace("$s", frame).replace("$c", cursors) for call in calls]
    body += [f"memcpy({n}, {frame} + {k}, {o.size} * sizeof(@T));" for n, o, k in out if o.size]
    code = "\n".join(functions)
    helpers = [text.replace("$", name) for call, text in HELPERS.items() if f"{call.replace('$', name)}(" in code]
    function = f"{_prototype(program, name, precision)}\n{_block(body)}"
    tables = [_constants(_table_name(name, t), t.rounded(precision), precision) for t in program.tables]
    return in_precision("\n".join([PREAMBLE.replace("$", name), *tables, *helpers, code, function]), precision)


def _table_name(name: str, table: Constants) -> str:
    return f"{name}_table_{table.digest[:16]}"


def _constants(name: str, values: NDArray[Any], precision: Precision) -> str:
    """A constant array, four numbers per line."""
    words = [literal(x, precision) for x in values.tolist()]
    lines = [", ".join(words[k : k + 4]) for k in range(0, len(words), 4)]
    return f"static const @T {name}[{len(words)}] = {{\n    " + ",\n    ".join(lines) + "};\n"


def _block(lines: list[str]) -> str:
    return "{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def _functions(
    plan: Schedule,
    name: str,
    kind: str,
    precision: Precision,
    functions: list[str],
    inside: LoopStep | None = None,
) -> list[str]:
    """A C function per step, appended to `functions`; returns the calls, for slots $s and cursors $c."""
    calls = []
    for step in plan.steps:
        if isinstance(step, Chunk):
            call, arguments = f"{name}_chunk{len(functions)}", ", item, keep" if inside else ""
            lines = _chunk(plan, step, name, precision, inside)
        elif isinstance(step, ScatterStep):
            call, arguments, lines = f"{name}_scatter{len(functions)}", "", _scatter(step)
        else:
            inner = _functions(step.body, name, kind, precision, functions, step)
            call, arguments = f"{name}_loop{len(functions)}", ""
            lines = _loop(step, inner)
        parameters = f"@T *s{', const @T *item, @T *keep' if arguments else ''}{', const @T **c' if plan.roots else ''}"
        lines = ["(void)c;", *lines] if plan.roots else lines
        functions.append(f"{kind} {call}({parameters})\n{_block(lines)}")
        calls.append(f"{call}($s{arguments}{', $c' if plan.roots else ''});")
    return calls


def _loop(step: LoopStep, calls: list[str]) -> list[str]:
    """The statements of a loop: copy the item, call the steps of the body, copy carried values."""
    loop = step.loop

    def row(table: Table) -> str:
        return f"s + ({table.first} + at * {table.per_item})"

    lines = [f"for (int i = 0; i < {loop.count}; i++) {{"]
    lines += [f"    if (s[{step.carried}] == 0.0@f) break;"] if loop.conditional else []
    lines += [f"    const int at = {f'{loop.count - 1} - i' if loop.reverse else 'i'};"]
    lines += [f"    const @T *item = {row(step.items)};", f"    @T *keep = {row(step.kept)};"]
    lines += [
        f"    c[{target.number}] = c[{source.number}] + at * {stride};" for source, stride, target in step.cursors
    ]
    lines += [f"    s[{slot}] = item[{k * step.items.per_value}];" for k, slot in step.copied.items()]
    calls = [call.replace("$s", "s").replace("$c", "c") for call in calls]
    lines += ["    (void)item;", "    (void)keep;", *(f"    {call}" for call in calls)]
    for positions in step.copies:
        head = f"for (int k = {positions.start}; k < {positions.stop}; k++)"
        lines += [f"    {head} s[{step.carried} + k] = s[{step.onward} + k];"]
    return [*lines, "}"]


def _scatter(step: ScatterStep) -> list[str]:
    """The statements that write a row at a run-time position."""
    table = step.table
    lines = [f"@T *const row = s + {table.first} + {table.per_item} * (int)s[{step.index}];"]
    lines += [f"const @T v{k} = s[{slot}];" for k, slot in enumerate(step.row)]
    return [*lines, *(f"row[{k * table.per_value}] = v{k};" for k in range(len(step.row)))]


def _chunk(plan: Schedule, chunk: Chunk, name: str, precision: Precision, inside: LoopStep | None) -> list[str]:
    """The statements of one chunk; values of earlier chunks are read from their slots at their first use."""
    program, stores = plan.program, chunk.stores
    names: dict[int, str] = {}
    lines: list[str] = []

    def define(value: int, expression: str) -> None:
        names[value] = f"v{value}"
        lines.append(f"const {'int' if program.is_logical(value) else '@T'} v{value} = {expression};")

    def local_name(value: int) -> str:
        if value <= 0:
            return literal(program.constants[-value], precision)
        if value not in names:  # booleans are 1.0 and 0.0 in slots
            if value in plan.shared:
                cursor, offset = plan.shared[value]
                address = f"c[{cursor.number}][{offset}]"
            elif value in plan.direct and inside:
                address = f"item[{plan.direct[value] * inside.items.per_value}]"
            else:
                address = f"s[{plan.slots[value]}]"
            define(value, address + (" != 0.0@f" if program.is_logical(value) else ""))
        return names[value]

    def store(value: int) -> None:
        local = local_name(value)
        lines.extend(f"s[{slot}] = {local};" for slot in stores.get(value, ()))
        if inside:
            lines.extend(f"keep[{k * inside.kept.per_value}] = {local};" for k in chunk.keeps.get(value, ()))

    computed = set(chunk.values)
    for value in (*stores, *chunk.keeps):
        if value not in computed:  # a constant, or a value of an earlier step
            computed.add(value)
            store(value)
    for value in chunk.values:
        operation, *args = program.nodes[value]
        if operation == "gather":
            row = plan.rows[value]
            define(value, f"s[{row.first} + {row.per_value} * (int){local_name(args[0])}]")
        elif operation == "lookup":
            source, index = args
            constant = isinstance(source.table, Constants)
            table = _table_name(name, source.table) if constant else f"c[{plan.roots[source.table].number}]"
            define(value, f"{table}[{source.first} + {source.step} * (int32_t){local_name(index)}]")
        elif operation not in OPERATIONS:
            raise BadArgument(
                f"{name} cannot be exported, as C does not support the operation {operation!r}.", code="not-supported"
            )
        else:
            define(value, OPERATIONS[operation].replace("$", name).format(*[local_name(a) for a in args]))
        if value in stores or value in chunk.keeps:
            store(value)
    return [*(f"(void){unused};" for unused in ("s", "item", "keep")[: 3 if inside else 1]), *lines]


def emit_check(
    program: Program,
    name: str,
    states: Sequence[NDArray[np.float64]],
    fma: bool = True,
    dtype: DTypeLike = np.float64,
) -> str:
    """The text of a program that compares the function of `emit_c` with the interpreter on a batch of states."""
    inputs, outputs = parameters(program)
    precision = Precision.of(dtype)
    arrays = [x.astype(precision.dtype) for x in states]
    expected = evaluate(program, *arrays, fma=fma, dtype=dtype)
    count = len(states[0])
    tables = [_table(f"{name}_in_{n}", x, precision) for n, x in zip(inputs, arrays, strict=True)]
    tables += [_table(f"{name}_right_{n}", x, precision) for n, x in zip(outputs, expected, strict=True)]
    arguments = [f"{name}_in_{n}[state]" for n in inputs] + [f"got_{n}" for n in outputs]
    fillings = {
        "tables": "".join(tables),
        "variables": "\n".join(
            f"    @T got_{n}[{max(o.size, 1)}];" for n, o in zip(outputs, program.outputs, strict=True)
        ),
        "arguments": ", ".join(arguments),
        "comparisons": "\n".join(
            f'        if ($_differs(state, "{n}", got_{n}, $_right_{n}[state], $_{n}_size)) return 1;' for n in outputs
        ),
        "states": str(count),
    }
    text = CHECK
    for mark, filling in fillings.items():
        text = text.replace(f"{{{mark}}}", filling)
    return in_precision(text.replace("$", name), precision)


def _table(name: str, states: NDArray[Any], precision: Precision) -> str:
    """A constant array with a row for each state, one number per line."""
    flat = states.reshape(len(states), -1)
    rows = ["{" + ",\n     ".join([literal(x, precision) for x in row.tolist() or [0.0]]) + "}" for row in flat]
    return f"static const @T {name}[{len(rows)}][{max(flat.shape[1], 1)}] = {{\n    " + ",\n    ".join(rows) + "};\n\n"
