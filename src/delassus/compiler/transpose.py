"""IR that carries states between arrays and frames.

An array holds one state after the other, a frame holds one value of all lanes after the other: packing is a
transposition. Where the core of a state is contiguous it is done in square blocks of `lanes` values, the last
block overlapping the one before; other strides take the slow path, element by element. A group with fewer states
than lanes is padded with copies of its last state.
"""

from delassus.compiler.program import Operand

WORD = 8  # bytes of a double


def emit_transposes(lanes: int, attributes: str) -> str:
    """`pack` and `unpack` for contiguous cores of at least `lanes` values.

    Both take (ptr frame slot, ptr first state, i64 bytes between states, i64 values, i64 states in the group).
    """
    loads = "".join(
        f"  %src{k} = getelementptr i8, ptr %row{k}, i64 %offset\n"
        f"  %x{k} = load <{lanes} x double>, ptr %src{k}, align {WORD}\n"
        for k in range(lanes)
    )
    to_frame, columns = _transpose(lanes, [f"%x{k}" for k in range(lanes)])
    stores = "".join(
        f"  %slot{k} = add i64 %at, {k}\n"
        f"  %dst{k} = getelementptr <{lanes} x double>, ptr %frame, i64 %slot{k}\n"
        f"  store <{lanes} x double> {column}, ptr %dst{k}, align {WORD * lanes}\n"
        for k, column in enumerate(columns)
    )
    from_frame = "".join(
        f"  %slot{k} = add i64 %at, {k}\n"
        f"  %src{k} = getelementptr <{lanes} x double>, ptr %frame, i64 %slot{k}\n"
        f"  %x{k} = load <{lanes} x double>, ptr %src{k}, align {WORD * lanes}\n"
        for k in range(lanes)
    )
    to_rows, rows = _transpose(lanes, [f"%x{k}" for k in range(lanes)])
    # Padding lanes share the row of the last state; lanes are stored downwards so that the real one comes last.
    writes = "".join(
        f"  %dst{k} = getelementptr i8, ptr %row{k}, i64 %offset\n"
        f"  store <{lanes} x double> {rows[k]}, ptr %dst{k}, align {WORD}\n"
        for k in reversed(range(lanes))
    )
    return _blocks("pack", lanes, attributes, loads + to_frame + stores) + _blocks(
        "unpack", lanes, attributes, from_frame + to_rows + writes
    )


def _blocks(name: str, lanes: int, attributes: str, block: str) -> str:
    """A loop over blocks; `%at` is the first value of a block and `%offset` its bytes from the row's start."""
    return f"""
define internal void @{name}_x{lanes}(ptr %frame, ptr %array, i64 %stride, i64 %size, i64 %states) {attributes} {{
entry:
  %last = sub i64 %states, 1
{row_pointers(lanes)}  %end = sub i64 %size, {lanes}
  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %at, {WORD}
{block}  %step = add i64 %at, {lanes}
  %over = icmp sgt i64 %step, %end
  %next = select i1 %over, i64 %end, i64 %step
  %more = icmp slt i64 %at, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


def row_pointers(lanes: int) -> str:
    """`%row0` … of the states of a group, the last state repeated; from `%array`, `%stride` and `%last`."""
    return "".join(
        f"  %inside{k} = icmp slt i64 {k}, %last\n"
        f"  %state{k} = select i1 %inside{k}, i64 {k}, i64 %last\n"
        f"  %start{k} = mul i64 %state{k}, %stride\n"
        f"  %row{k} = getelementptr i8, ptr %array, i64 %start{k}\n"
        for k in range(lanes)
    )


def _transpose(lanes: int, rows: list[str]) -> tuple[str, list[str]]:
    """Shuffles that transpose a square block: at each stage, half-blocks of two rows change places."""
    text, width, stage = "", 1, 0
    while width < lanes:
        swapped = list(rows)
        for i in range(lanes):
            if i & width:
                continue
            a, b = rows[i], rows[i + width]
            for target, shift in ((i, 0), (i + width, width)):
                picks = [(j + shift if not j & width else lanes + j - width + shift) for j in range(lanes)]
                name = f"%t{stage}.{target}"
                mask = ", ".join(f"i32 {p}" for p in picks)
                vector = f"<{lanes} x double>"
                text += f"  {name} = shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{mask}>\n"
                swapped[target] = name
        rows, width, stage = swapped, width * 2, stage + 1
    return text, rows


def emit_element_copies(name: str, operand: Operand, first_stride: int, lanes: int, attributes: str) -> str:
    """`{name}_in` and `{name}_out`, the slow path of one operand: any strides, element by element.

    They take (ptr frame slot, ptr first state, i64 bytes between states, ptr strides, i64 states in the group);
    the operand's core strides start at index `first_stride` of the strides.
    """
    step = 1
    offsets, total = "", "0"
    for axis in reversed(range(len(operand.shape))):
        n = operand.shape[axis]
        offsets += (
            f"  %quotient{axis} = udiv i64 %at, {step}\n"
            f"  %index{axis} = urem i64 %quotient{axis}, {n}\n"
            f"  %where{axis} = getelementptr i64, ptr %strides, i64 {first_stride + axis}\n"
            f"  %core{axis} = load i64, ptr %where{axis}, align {WORD}\n"
            f"  %part{axis} = mul i64 %index{axis}, %core{axis}\n"
            f"  %offset{axis} = add i64 {total}, %part{axis}\n"
        )
        total, step = f"%offset{axis}", step * n
    text, parameters = "", "ptr %frame, ptr %array, i64 %stride, ptr %strides, i64 %states"
    for direction in ("in", "out"):
        copies = "".join(
            f"  %array{k} = getelementptr i8, ptr %row{k}, i64 {total}\n"
            f"  %element{k} = add i64 %block, {k}\n"
            f"  %lane{k} = getelementptr double, ptr %frame, i64 %element{k}\n"
            + _copy(k, *((f"%array{k}", f"%lane{k}") if direction == "in" else (f"%lane{k}", f"%array{k}")))
            for k in reversed(range(lanes))
        )
        text += f"""
define internal void @{name}_{direction}_x{lanes}({parameters}) {attributes} {{
entry:
  %last = sub i64 %states, 1
{row_pointers(lanes)}  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %block = mul i64 %at, {lanes}
{offsets}{copies}  %next = add i64 %at, 1
  %more = icmp slt i64 %next, {operand.size}
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""
    return text


def _copy(k: int, source: str, target: str) -> str:
    return (
        f"  %value{k} = load double, ptr {source}, align {WORD}\n  store double %value{k}, ptr {target}, align {WORD}\n"
    )
