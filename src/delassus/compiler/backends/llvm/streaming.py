"""IR that writes large results with non-temporal stores, which bypass the caches.

A store to memory that is not cached first reads its cache line, and the line is written back later: twice the traffic.
Nontemporal stores of whole lines avoid this, and leave the caches to the frames. The values of a state are one row of
the array, and the rows of a group of states are filled in parallel: a piece of each is assembled in a small buffer and
streamed from there, between boundaries of vectors.

They are used for results that exceed the caches, with a threshold of `STREAM_BYTES` for all outputs of a call.
"""

from delassus.compiler.backends.llvm.placeholders import fill_in
from delassus.compiler.backends.llvm.shorthand import expand_ir
from delassus.compiler.backends.target import Target

STREAM_BYTES = 16 * 1024 * 1024
SMALLEST_ROW = 512  # values of a state in an array; shorter rows have too many partial cache lines
_PIECE = 128  # values of a row that are assembled at once


def emit_stream(target: Target) -> str:
    """The functions `stream`, with the arguments of `unpack` (see `transpose`), and `finish_streams`."""
    length = _PIECE + target.lanes
    filled = _STREAM.replace("$PIECE", str(_PIECE)).replace("$LENGTH", str(length))
    filled = filled.replace("$STRIDE", str(length * target.precision.bytes)).replace("$ALL", str(length * target.lanes))
    return fill_in(filled, target.lanes, target.precision) + _FINISH


# The buffer has $LENGTH values of each row. $PIECE of them are streamed, from the first aligned vector of the row on. A
# piece is the last one if the buffer reaches the end of the row; it may have no complete aligned vector.
_STREAM = expand_ir("""
define internal void @stream_x$X(ptr %frame, ptr %array, i64 %stride, i64 %size, i64 %states) #0 {
entry:
  %buffer = alloca [ $ALL x $E ], align 64
  br label %piece
piece:
  %a = phi i64 [ 0, %entry ], [ %a1, %piece.done ]
  %left = sub i64 %size, %a
  %is.last = icmp sle i64 %left, $LENGTH
  %count = select i1 %is.last, i64 %left, i64 $LENGTH
  %place = getelementptr $T, ptr %frame, i64 %a
  call void @unpack_x$X(ptr %place, ptr %buffer, i64 $STRIDE, i64 %count, i64 $X)
  %is.first = icmp eq i64 %a, 0
  br label %row
row:
  %r = phi i64 [ 0, %piece ], [ %r1, %row.done ]
  %r.from = mul i64 %r, $STRIDE
  %from = getelementptr i8, ptr %buffer, i64 %r.from
  %r.to = mul i64 %r, %stride
  %row.start = getelementptr i8, ptr %array, i64 %r.to
  %to = getelementptr $E, ptr %row.start, i64 %a
  %address = ptrtoint ptr %to to i64
  %negative = sub i64 0, %address
  %missing = urem i64 %negative, $A
  %h = udiv i64 %missing, $S
  %end.inside = add i64 %h, $PIECE
  %end = select i1 %is.last, i64 %count, i64 %end.inside
  %head = select i1 %is.first, i64 %h, i64 0
  call void @some(ptr %to, ptr %from, i64 0, i64 %head)
  %v0 = add i64 %h, $X
  %any.vectors = icmp sle i64 %v0, %end
  br i1 %any.vectors, label %vector, label %vectors.done
vector:
  %v = phi i64 [ %h, %row ], [ %v1, %vector ]
  %v.from = getelementptr $E, ptr %from, i64 %v
  %x = load $T, ptr %v.from, align $S
  %v.to = getelementptr $E, ptr %to, i64 %v
  store $T %x, ptr %v.to, align $A, !nontemporal !0
  %v1 = add i64 %v, $X
  %v2 = add i64 %v1, $X
  %more.vectors = icmp sle i64 %v2, %end
  br i1 %more.vectors, label %vector, label %vectors.done
vectors.done:
  %rest = phi i64 [ %h, %row ], [ %v1, %vector ]
  call void @some(ptr %to, ptr %from, i64 %rest, i64 %end)
  br label %row.done
row.done:
  count %r below %states: %row, then %piece.done
piece.done:
  %a1 = add i64 %a, $PIECE
  br i1 %is.last, label %exit, label %piece
exit:
  ret void
}
define internal void @some(ptr %to, ptr %from, i64 %first, i64 %end) #0 {
entry:
  %any = icmp slt i64 %first, %end
  br i1 %any, label %loop, label %exit
loop:
  %k = phi i64 [ %first, %entry ], [ %k1, %loop ]
  %k.from = getelementptr $E, ptr %from, i64 %k
  %x = load $E, ptr %k.from, align $S
  %k.to = getelementptr $E, ptr %to, i64 %k
  store $E %x, ptr %k.to, align $S
  count %k below %end: %loop, then %exit
exit:
  ret void
}
""")

# A fence: other threads may see streamed stores before it in any order.
_FINISH = """
declare void @llvm.x86.sse.sfence()
define internal void @finish_streams() #0 {
  call void @llvm.x86.sse.sfence()
  ret void
}
!0 = !{ i32 1 }
"""
