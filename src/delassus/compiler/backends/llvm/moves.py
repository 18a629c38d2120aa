"""IR that copies states between the arrays of a call and a frame."""

from delassus.compiler.backends.llvm import transpose
from delassus.compiler.backends.llvm.placeholders import fill_in
from delassus.compiler.backends.llvm.shared import CHECK_AXIS
from delassus.compiler.backends.llvm.shorthand import expand_ir
from delassus.compiler.backends.llvm.streaming import SMALLEST_ROW
from delassus.compiler.backends.target import Target


def emit_move(target: Target, lanes: int) -> str:
    """The function `move_x…` for single states or for all lanes; it calls those of `transpose` and `streaming`."""
    if lanes == 1:
        return fill_in(_MOVE.replace("$AXIS", CHECK_AXIS).replace("$COPY", _COPY_ONE), 1, target.precision)
    copy = _COPY_MANY.replace("$H", str(transpose.block_size(lanes)))
    copy = copy.replace("$STREAM", _STREAM if target.is_x86 else _UNPACK)
    return fill_in(_MOVE.replace("$AXIS", CHECK_AXIS).replace("$COPY", copy), lanes, target.precision)


# Copies from the arrays to a frame, or back. An array is contiguous if all its core strides are those of C order.
# Shared arrays, whose size is 0 here, are not copied.
_MOVE = expand_ir("""
define internal void @move_x$X(ptr %frame, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 %states, i1 %inwards,
                              i1 %far) #0 {
entry:
  %n = load i64, ptr %kernel, align 8
  %inputs <- i64 %kernel[1]
  %table <- ptr %kernel[4]
  br label %operand
operand:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %core = phi i64 [ %n, %entry ], [ %core1, %next ]
  %row = getelementptr { i64, i64, i64, ptr, i64 }, ptr %table, i64 %k
  %size = load i64, ptr %row, align 8
  %slot <- i64 %row[1]
  %axes <- i64 %row[2]
  %shape <- ptr %row[3]
  %core1 = add i64 %core, %axes
  %is.input = icmp slt i64 %k, %inputs
  %right.way = icmp eq i1 %is.input, %inwards
  %is.moved = icmp ne i64 %size, 0
  %mine = and i1 %right.way, %is.moved
  br i1 %mine, label %move, label %next
move:
  %base <- ptr %args[%k]
  %stride <- i64 %strides[%k]
  %start = mul i64 %i, %stride
  %array = getelementptr i8, ptr %base, i64 %start
  %place = getelementptr $T, ptr %frame, i64 %slot
  %cores = getelementptr i64, ptr %strides, i64 %core
  br label %check
check:
  %left = phi i64 [ %axes, %move ], [ %a, %check.axis ]
  %expected = phi i64 [ $S, %move ], [ %expected1, %check.axis ]
  %checked = icmp eq i64 %left, 0
  br i1 %checked, label %contiguous, label %check.axis
check.axis:
$AXIS
  br i1 %same, label %check, label %scattered
contiguous:
$COPY
scattered:
  call void @elements(ptr %place, i64 $X, ptr %array, i64 %stride, ptr %cores, ptr %shape, i64 %axes, i64 %size,
                      i64 %states, i1 %inwards)
  br label %next
next:
  count %k below %n: %operand, then %exit
exit:
  ret void
}
""")

_COPY_ONE = """  br i1 %inwards, label %take, label %give
take:
  call void @take(ptr %place, ptr %array, i64 %size)
  br label %next
give:
  %bytes = mul i64 %size, $S
  call void @llvm.memcpy.p0.p0.i64(ptr %array, ptr %place, i64 %bytes, i1 false)
  br label %next"""

_COPY_MANY = """  %large = icmp sge i64 %size, $H
  br i1 %large, label %blocks, label %elements
blocks:
  br i1 %inwards, label %pack, label %unpack
pack:
  call void @pack_x$X(ptr %place, ptr %array, i64 %stride, i64 %size, i64 %states)
  br label %next
unpack:
  $STREAM
unpack.near:
  call void @unpack_x$X(ptr %place, ptr %array, i64 %stride, i64 %size, i64 %states)
  br label %next
elements:
  br i1 %inwards, label %spread, label %collect
spread:
  call void @spread_x$X(ptr %place, ptr %array, i64 %stride, i64 %size, i64 %states)
  br label %next
collect:
  call void @collect_x$X(ptr %place, ptr %array, i64 %stride, i64 %size, i64 %states)
  br label %next"""

_UNPACK = "br label %unpack.near"
_STREAM = f"""%long = icmp sge i64 %size, {SMALLEST_ROW}
  %streamed = and i1 %far, %long
  br i1 %streamed, label %stream, label %unpack.near
stream:
  call void @stream_x$X(ptr %place, ptr %array, i64 %stride, i64 %size, i64 %states)
  br label %next"""
