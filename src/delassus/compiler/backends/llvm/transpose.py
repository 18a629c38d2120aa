"""IR that transposes states between arrays and frames.

In an array, the values of a state are adjacent; in a frame, the k-th values of all lanes are adjacent. So packing is a
transposition. There are three methods. If the core of a state is contiguous and large enough, blocks of `block_size`
values are transposed; the last block overlaps the previous one. Small contiguous cores are copied element by element.
For all other strides there is a slow method. A group with fewer states than lanes is padded with copies of its last
state.

Inputs are multiplied by one, which flushes subnormals: operations that only move bits, such as a change of sign or a
selection, would not flush them. The factor is a variable so that LLVM cannot remove it.
"""

from collections.abc import Iterable

from delassus.compiler.backends.llvm.placeholders import fill_in
from delassus.compiler.backends.llvm.shorthand import expand_ir
from delassus.compiler.graph.precision import Precision

ELEMENTS = expand_ir("""
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
  count %k below %size: %element, then %exit
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
  %n <- i64 %shape[%k]
  %step <- i64 %core[%k]
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
  count %i below %lanes: %lane, then %element.done
element.done:
  count %at below %size: %element, then %exit
exit:
  ret void
}
""")
"""`take` copies one contiguous state to a frame. `elements` is the slow method, for any number of lanes and any
strides, in both directions; `core` are the strides and `shape` the lengths of the axes. $E is the type of a value, $S
its size in bytes."""


def emit_copies(lanes: int, precision: Precision) -> str:
    """The copies of contiguous cores: `pack` and `unpack` by blocks, `spread` and `collect` by elements.

    All take (ptr frame slot, ptr first state, i64 bytes between states, i64 values, i64 states in the group).
    """
    block = block_size(lanes)
    copies = (
        _loop("pack", lanes, block, _pack(lanes, block)),
        _loop("unpack", lanes, block, _unpack(lanes, block)),
        _loop("spread", lanes, 1, _scalars(lanes, True)),
        _loop("collect", lanes, 1, _scalars(lanes, False)),
    )
    return fill_in("".join(copies), lanes, precision)


def block_size(lanes: int) -> int:
    """The number of values of a state that are copied at once.

    On 16 lanes, blocks of 8 are up to a fifth faster for cores of 30 values and more, but there copies take little of
    the time. Blocks of 4 are up to a third faster for cores of 4 to 7 values, which blocks of 8 would copy element by
    element.
    """
    return min(4, lanes // 2)


def _pack(lanes: int, block: int) -> str:
    """Rows to columns. The last stages of the transposition are in the loads, which join pieces of rows."""
    text = ""
    for k in range(block):
        pieces = []
        for row in range(k, lanes, block):
            text += f"  %from{row} = getelementptr i8, ptr %row{row}, i64 %offset\n"
            text += f"  %piece{row} = load <{block} x $E>, ptr %from{row}, align $S\n"
            pieces.append(f"%piece{row}")
        vector, raw = _join(pieces, block)
        text += f"{vector}  %x{k} = fmul $T {raw}, %ones\n"
    shuffles, columns = _transpose_blocks(lanes, block)
    stores = "".join(
        f"  %slot{k} = add i64 %at, {k}\n  %to{k} = getelementptr $T, ptr %frame, i64 %slot{k}\n  store $T {column}, "
        f"ptr %to{k}, align $A\n"
        for k, column in enumerate(columns)
    )
    return text + shuffles + stores


def _unpack(lanes: int, block: int) -> str:
    """Columns to rows. The last stages of the transposition are in the stores, which separate pieces of rows.

    Padding lanes are copies of the last state, and write the same numbers to its row.
    """
    loads = "".join(
        f"  %slot{k} = add i64 %at, {k}\n  %from{k} = getelementptr $T, ptr %frame, i64 %slot{k}\n  %x{k} = load $T, "
        f"ptr %from{k}, align $A\n"
        for k in range(block)
    )
    shuffles, vectors = _transpose_blocks(lanes, block)
    stores = ""
    for k, value in enumerate(vectors):
        for row in range(k, lanes, block):
            picks = _mask(range(row - k, row - k + block))
            stores += (
                f"  %piece{row} = shufflevector $T {value}, $T poison, {picks}\n"
                f"  %to{row} = getelementptr i8, ptr %row{row}, i64 %offset\n"
                f"  store <{block} x $E> %piece{row}, ptr %to{row}, align $S\n"
            )
    return loads + shuffles + stores


def _join(pieces: list[str], size: int) -> tuple[str, str]:
    """Shuffles that concatenate vectors, two at a time; and the name of the result."""
    text = ""
    while len(pieces) > 1:
        wider = [f"{a}.{2 * size}" for a in pieces[::2]]
        for name, a, b in zip(wider, pieces[::2], pieces[1::2], strict=True):
            operands = f"<{size} x $E> {a}, <{size} x $E> {b}"
            text += f"  {name} = shufflevector {operands}, {_mask(range(2 * size))}\n"
        pieces, size = wider, 2 * size
    return text, pieces[0]


def _mask(picks: Iterable[int]) -> str:
    """The mask of a shuffle."""
    words = [f"i32 {pick}" for pick in picks]
    return f"<{len(words)} x i32> <{', '.join(words)}>"


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
        f"  %inside{k} = icmp slt i64 {k}, %last\n  %state{k} = select i1 %inside{k}, i64 {k}, i64 %last\n  %start{k} "
        f"= mul i64 %state{k}, %stride\n  %row{k} = getelementptr i8, ptr %array, i64 %start{k}\n"
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


def _transpose_blocks(lanes: int, block: int) -> tuple[str, list[str]]:
    """Shuffles that transpose each square block of `%x0` …, `block` vectors; and the names of the results.

    At each stage, blocks of two vectors are swapped. Shuffles are the bottleneck of packing; memory instructions do the
    other stages at no cost.
    """
    rows = [f"%x{k}" for k in range(block)]
    text, width, stage = "", 1, 0
    while width < block:
        swapped = list(rows)
        for i in range(block):
            if i & width:
                continue
            a, b = rows[i], rows[i + width]
            for target, shift in ((i, 0), (i + width, width)):
                mask = _mask((j + shift if not j & width else lanes + j - width + shift) for j in range(lanes))
                swapped[target] = f"%t{stage}.{target}"
                text += f"  {swapped[target]} = shufflevector $T {a}, $T {b}, {mask}\n"
        rows, width, stage = swapped, width * 2, stage + 1
    return text, rows
