"""IR that carries states between arrays and frames.

An array holds one state after the other, a frame holds one value of all lanes after the other: packing is a
transposition. There are three ways: in square blocks of `lanes` values where the core of a state is contiguous and
large enough, the last block overlapping the one before; element by element where it is contiguous and small; and
slowly for any other strides. A group with fewer states than lanes is padded with copies of its last state.

What goes in is multiplied by one, which makes subnormals zero: operations that only move bits, such as a change of
sign or a choice, would let them pass. LLVM must not see that factor, so it is a variable.
"""

from delassus.compiler.llvm_ir import fill_in
from delassus.compiler.precision import Precision

ELEMENTS = """
@one = internal global <16 x $E> splat ($E 1.0), align 64

define internal void @take(ptr %frame, ptr %array, i64 %size) #0 {
entry:
  %one = load $E, ptr @one, align $S
  %ones = load <4 x $E>, ptr @one, align 16
  %end = sub i64 %size, 4
  %large = icmp sge i64 %end, 0
  br i1 %large, label %block, label %element
block:
  %at = phi i64 [ 0, %entry ], [ %next, %block ]
  %from = getelementptr $E, ptr %array, i64 %at
  %to = getelementptr $E, ptr %frame, i64 %at
  %values = load <4 x $E>, ptr %from, align $S
  %flushed = fmul <4 x $E> %values, %ones
  store <4 x $E> %flushed, ptr %to, align $S
  %step = add i64 %at, 4
  %over = icmp sgt i64 %step, %end
  %next = select i1 %over, i64 %end, i64 %step
  %more = icmp slt i64 %at, %end
  br i1 %more, label %block, label %exit
element:
  %k = phi i64 [ 0, %entry ], [ %k1, %element ]
  %from1 = getelementptr $E, ptr %array, i64 %k
  %to1 = getelementptr $E, ptr %frame, i64 %k
  %value = load $E, ptr %from1, align $S
  %flushed1 = fmul $E %value, %one
  store $E %flushed1, ptr %to1, align $S
  %k1 = add i64 %k, 1
  %more1 = icmp slt i64 %k1, %size
  br i1 %more1, label %element, label %exit
exit:
  ret void
}

define internal void @elements(ptr %frame, i64 %lanes, ptr %array, i64 %stride, ptr %core, ptr %shape, i64 %axes,
                               i64 %size, i64 %states, i1 %inwards) noinline nounwind {
entry:
  %one = load $E, ptr @one, align $S
  %last = sub i64 %states, 1
  br label %element
element:
  %at = phi i64 [ 0, %entry ], [ %at1, %element.done ]
  br label %axis
axis:
  %left = phi i64 [ %axes, %element ], [ %k, %axis ]
  %rest = phi i64 [ %at, %element ], [ %quotient, %axis ]
  %offset = phi i64 [ 0, %element ], [ %offset1, %axis ]
  %k = sub i64 %left, 1
  %n.at = getelementptr i64, ptr %shape, i64 %k
  %n = load i64, ptr %n.at, align 8
  %step.at = getelementptr i64, ptr %core, i64 %k
  %step = load i64, ptr %step.at, align 8
  %index = urem i64 %rest, %n
  %quotient = udiv i64 %rest, %n
  %part = mul i64 %index, %step
  %offset1 = add i64 %offset, %part
  %more.axes = icmp sgt i64 %k, 0
  br i1 %more.axes, label %axis, label %lanes.start
lanes.start:
  %block = mul i64 %at, %lanes
  br label %lane
lane:
  %i = phi i64 [ 0, %lanes.start ], [ %i1, %lane.done ]
  %inside = icmp slt i64 %i, %last
  %state = select i1 %inside, i64 %i, i64 %last
  %row = mul i64 %state, %stride
  %byte = add i64 %row, %offset1
  %outer = getelementptr i8, ptr %array, i64 %byte
  %slot = add i64 %block, %i
  %inner = getelementptr $E, ptr %frame, i64 %slot
  %source = select i1 %inwards, ptr %outer, ptr %inner
  %target = select i1 %inwards, ptr %inner, ptr %outer
  %value = load $E, ptr %source, align $S
  %flushed = fmul $E %value, %one
  store $E %flushed, ptr %target, align $S
  br label %lane.done
lane.done:
  %i1 = add i64 %i, 1
  %more.lanes = icmp slt i64 %i1, %lanes
  br i1 %more.lanes, label %lane, label %element.done
element.done:
  %at1 = add i64 %at, 1
  %more = icmp slt i64 %at1, %size
  br i1 %more, label %element, label %exit
exit:
  ret void
}
"""
"""`take`, one state that is contiguous, inwards; and the slow way, for any number of lanes and any strides in both
directions: `core` are the strides and `shape` the lengths of the axes. $E is the type of a value, $S its bytes."""


def emit_copies(lanes: int, precision: Precision) -> str:
    """The copies of contiguous cores: `pack` and `unpack` by blocks, `spread` and `collect` by elements.

    All take (ptr frame slot, ptr first state, i64 bytes between states, i64 values, i64 states in the group).
    """
    word = precision.bytes
    copies = (
        _pack(lanes, word),
        _unpack(lanes, word),
        _loop("spread", lanes, 1, _scalars(lanes, True)),
        _loop("collect", lanes, 1, _scalars(lanes, False)),
    )
    return fill_in("".join(copies), lanes, precision)


def _pack(lanes: int, word: int) -> str:
    """Rows to columns. The last stage of the transposition is in the loads, which put two half-rows side by side."""
    half, vector = lanes // 2, f"<{lanes} x $E>"
    both = ", ".join(f"i32 {j}" for j in range(lanes))
    loads = ""
    for k in range(half):
        for part in (0, 1):
            at = f"{k}.{part}"
            loads += f"  %offset{at} = add i64 %offset, {part * half * word}\n"
            for name, row in (("low", k), ("high", k + half)):
                loads += f"  %{name}.at{at} = getelementptr i8, ptr %row{row}, i64 %offset{at}\n"
                loads += f"  %{name}{at} = load <{half} x $E>, ptr %{name}.at{at}, align $S\n"
            halves = f"<{half} x $E> %low{at}, <{half} x $E> %high{at}"
            loads += f"  %raw{k + part * half} = shufflevector {halves}, <{lanes} x i32> <{both}>\n"
    loads += "".join(f"  %x{k} = fmul {vector} %raw{k}, %ones\n" for k in range(lanes))
    shuffles, columns = _transpose_halves(lanes, [f"%x{k}" for k in range(lanes)])
    stores = "".join(
        f"  %slot{k} = add i64 %at, {k}\n"
        f"  %dst{k} = getelementptr {vector}, ptr %frame, i64 %slot{k}\n"
        f"  store {vector} {column}, ptr %dst{k}, align $A\n"
        for k, column in enumerate(columns)
    )
    return _loop("pack", lanes, lanes, loads + shuffles + stores)


def _unpack(lanes: int, word: int) -> str:
    """Columns to rows. The last stage of the transposition is in the stores, which take halves apart.

    Padding lanes hold copies of the last state and write the same numbers to its row.
    """
    half, vector = lanes // 2, f"<{lanes} x $E>"
    loads = "".join(
        f"  %slot{k} = add i64 %at, {k}\n"
        f"  %src{k} = getelementptr {vector}, ptr %frame, i64 %slot{k}\n"
        f"  %x{k} = load {vector}, ptr %src{k}, align $A\n"
        for k in range(lanes)
    )
    shuffles, mixed = _transpose_halves(lanes, [f"%x{k}" for k in range(lanes)])
    stores = ""
    for k, value in enumerate(mixed):
        for part in (0, 1):
            picks = ", ".join(f"i32 {part * half + j}" for j in range(half))
            row, offset = k % half + part * half, k // half * half * word
            stores += (
                f"  %part{k}.{part} = shufflevector {vector} {value}, {vector} poison, <{half} x i32> <{picks}>\n"
                f"  %byte{k}.{part} = add i64 %offset, {offset}\n"
                f"  %dst{k}.{part} = getelementptr i8, ptr %row{row}, i64 %byte{k}.{part}\n"
                f"  store <{half} x $E> %part{k}.{part}, ptr %dst{k}.{part}, align $S\n"
            )
    return _loop("unpack", lanes, lanes, loads + shuffles + stores)


def _scalars(lanes: int, inwards: bool) -> str:
    text = f"  %block = mul i64 %at, {lanes}\n"
    for k in range(lanes):
        source, target = (f"%outer{k}", f"%inner{k}") if inwards else (f"%inner{k}", f"%outer{k}")
        text += (
            f"  %outer{k} = getelementptr i8, ptr %row{k}, i64 %offset\n"
            f"  %slot{k} = add i64 %block, {k}\n"
            f"  %inner{k} = getelementptr $E, ptr %frame, i64 %slot{k}\n"
            f"  %raw{k} = load $E, ptr {source}, align $S\n"
            f"  %value{k} = fmul $E %raw{k}, %one\n"
            f"  store $E %value{k}, ptr {target}, align $S\n"
        )
    return text


def _loop(name: str, lanes: int, block: int, body: str) -> str:
    """A loop over blocks of values; `%at` is a block's first value, `%offset` its bytes from the start of `%row0` …."""
    rows = "".join(
        f"  %inside{k} = icmp slt i64 {k}, %last\n"
        f"  %state{k} = select i1 %inside{k}, i64 {k}, i64 %last\n"
        f"  %start{k} = mul i64 %state{k}, %stride\n"
        f"  %row{k} = getelementptr i8, ptr %array, i64 %start{k}\n"
        for k in range(lanes)
    )
    return f"""
define internal void @{name}_x{lanes}(ptr %frame, ptr %array, i64 %stride, i64 %size, i64 %states) #0 {{
entry:
  %one = load $E, ptr @one, align $S
  %ones = load <{lanes} x $E>, ptr @one, align $A
  %last = sub i64 %states, 1
{rows}  %end = sub i64 %size, {block}
  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %at, $S
{body}  %step = add i64 %at, {block}
  %over = icmp sgt i64 %step, %end
  %next = select i1 %over, i64 %end, i64 %step
  %more = icmp slt i64 %at, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


def _transpose_halves(lanes: int, rows: list[str]) -> tuple[str, list[str]]:
    """Shuffles that transpose a square block but for its last stage, the exchange of half-rows.

    At each stage, blocks of two rows change places. Shuffles are the bottleneck of packing, and memory instructions
    can do one stage of three for free.
    """
    text, width, stage = "", 1, 0
    vector = f"<{lanes} x $E>"
    while width < lanes // 2:
        swapped = list(rows)
        for i in range(lanes):
            if i & width:
                continue
            a, b = rows[i], rows[i + width]
            for target, shift in ((i, 0), (i + width, width)):
                picks = [(j + shift if not j & width else lanes + j - width + shift) for j in range(lanes)]
                mask = ", ".join(f"i32 {p}" for p in picks)
                swapped[target] = f"%t{stage}.{target}"
                text += f"  {swapped[target]} = shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{mask}>\n"
        rows, width, stage = swapped, width * 2, stage + 1
    return text, rows
