"""IR that runs states through the compiled body of a kernel: load into frames, compute, store.

Single states are processed one after the other. Batches are processed in groups of lanes, two groups at a time if their
frames fit into the cache together; the memory of the next groups is prefetched.
"""

from delassus.compiler.backends.llvm import transpose
from delassus.compiler.backends.llvm.moves import emit_move
from delassus.compiler.backends.llvm.placeholders import fill_in
from delassus.compiler.backends.llvm.shared import SHARE
from delassus.compiler.backends.llvm.shorthand import expand_ir
from delassus.compiler.backends.llvm.streaming import emit_stream
from delassus.compiler.backends.target import Target

STATES = "delassus_states"
STACK_BYTES = 64 * 1024  # larger frames are allocated on the heap


def emit_states(target: Target, lanes: int) -> str:
    """The text of the module that runs states through frames, for single states or for all lanes: `STATES`."""
    precision = target.precision
    parts = [DECLARATIONS, fill_in(transpose.ELEMENTS, 1, precision)]
    if lanes == 1:
        parts += [emit_move(target, 1), fill_in(SHARE + _STATES_ONE, 1, precision)]
    else:
        parts += [transpose.emit_copies(lanes, precision), emit_stream(target) if target.is_x86 else ""]
        two_values, finish = str(2 * lanes * precision.bytes), "call void @finish_streams()" if target.is_x86 else ""
        states = _STATES_MANY.replace("$F", two_values).replace("$DONE", finish)
        parts += [fill_in(_FETCH, lanes, precision), emit_move(target, lanes)]
        parts += [fill_in(SHARE + states, lanes, precision)]
    return "".join((*parts, target.attributes))


DECLARATIONS = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

# The record `code` (see `runtime`): the function below, `start`, the number of parts, their `body1`, their `body2`,
# bytes of the largest pair of frames. States run one by one. If the heap is exhausted, the frame of a single state is
# on the stack.
_STATES_ONE = expand_ir(f"""
define i1 @{STATES}(ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n) #0 {{
entry:
  %slots <- i64 %kernel[2]
  %parts <- i64 %code[2]
  %bodies <- ptr %code[3]
  %bytes = mul i64 %slots, $S
  %small = icmp ule i64 %bytes, {STACK_BYTES}
  br i1 %small, label %stack, label %heap
heap:
  %allocated = call ptr @malloc(i64 %bytes)
  %missing = icmp eq ptr %allocated, null
  br i1 %missing, label %stack, label %ready
stack:
  %reserved = alloca i8, i64 %bytes, align 64
  br label %ready
ready:
  %frame = phi ptr [ %reserved, %stack ], [ %allocated, %heap ]
  %release = phi ptr [ null, %stack ], [ %allocated, %heap ]
  %start <- ptr %code[1]
  call void %start(ptr %frame)
  call void @share_x1(ptr %frame, ptr %kernel, ptr %args)
  br label %loop
loop:
  %i = phi i64 [ 0, %ready ], [ %next, %done ]
  call void @move_x1(ptr %frame, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 1, i1 true, i1 false)
  br label %part
part:
  %p = phi i64 [ 0, %loop ], [ %p1, %part ]
  %body <- ptr %bodies[%p]
  call void %body(ptr %frame)
  count %p below %parts: %part, then %done
done:
  call void @move_x1(ptr %frame, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 1, i1 false, i1 false)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  call void @free(ptr %release)
  ret i1 true
}}
""")

# The result is false if there is no memory for frames of all lanes.
_STATES_MANY = expand_ir(f"""
define i1 @{STATES}(ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n) #0 {{
entry:
  %slots <- i64 %kernel[2]
  %near <- i64 %kernel[3]
  %parts <- i64 %code[2]
  %bodies1 <- ptr %code[3]
  %bodies2 <- ptr %code[4]
  %context = alloca [ 3 x ptr ], align 8
  store ptr %kernel, ptr %context, align 8
  %context.args = getelementptr ptr, ptr %context, i64 1
  store ptr %args, ptr %context.args, align 8
  %context.strides = getelementptr ptr, ptr %context, i64 2
  store ptr %strides, ptr %context.strides, align 8
  %is.near = icmp sle i64 %n, %near
  %far.at = getelementptr i64, ptr %kernel, i64 10
  %far.states = load i64, ptr %far.at, align 8
  %far = icmp sgt i64 %n, %far.states
  %fetch = select i1 %is.near, ptr @fetch_nothing, ptr @fetch
  %bytes = mul i64 %slots, $F
  %most <- i64 %code[5]
  %paired = icmp ule i64 %bytes, %most
  %small = icmp ule i64 %bytes, {STACK_BYTES}
  br i1 %small, label %stack, label %heap
heap:
  %more.bytes = add i64 %bytes, 64
  %allocated = call ptr @malloc(i64 %more.bytes)
  %missing = icmp eq ptr %allocated, null
  br i1 %missing, label %short, label %align
short:
  ret i1 false
align:
  %address = ptrtoint ptr %allocated to i64
  %up = add i64 %address, 63
  %aligned = and i64 %up, -64
  %on.heap = inttoptr i64 %aligned to ptr
  br label %ready
stack:
  %reserved = alloca i8, i64 %bytes, align 64
  br label %ready
ready:
  %a = phi ptr [ %reserved, %stack ], [ %on.heap, %align ]
  %release = phi ptr [ null, %stack ], [ %allocated, %align ]
  %b = getelementptr $T, ptr %a, i64 %slots
  %start <- ptr %code[1]
  call void %start(ptr %a)
  call void %start(ptr %b)
  call void @share_x$X(ptr %a, ptr %kernel, ptr %args)
  call void @share_x$X(ptr %b, ptr %kernel, ptr %args)
  br label %loop
loop:
  %i = phi i64 [ 0, %ready ], [ %ahead, %done ]
  %left = sub i64 %n, %i
  %few = icmp slt i64 %left, $X
  %first = select i1 %few, i64 %left, i64 $X
  call void @move_x$X(ptr %a, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 %first, i1 true, i1 false)
  %j = add i64 %i, $X
  %after = add i64 %j, $X
  %ahead = select i1 %paired, i64 %after, i64 %j
  %rest = sub i64 %left, $X
  %another = icmp sgt i64 %rest, 0
  %two = and i1 %another, %paired
  br i1 %two, label %pair, label %single
pair:
  %fewer = icmp slt i64 %rest, $X
  %second = select i1 %fewer, i64 %rest, i64 $X
  call void @move_x$X(ptr %b, ptr %kernel, ptr %args, ptr %strides, i64 %j, i64 %second, i1 true, i1 false)
  br label %pair.part
pair.part:
  %p = phi i64 [ 0, %pair ], [ %p1, %pair.part ]
  %body2 <- ptr %bodies2[%p]
  call void %body2(ptr %a, ptr %b, ptr %fetch, ptr %context, i64 %ahead)
  count %p below %parts: %pair.part, then %pair.done
pair.done:
  call void @move_x$X(ptr %a, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 %first, i1 false, i1 %far)
  call void @move_x$X(ptr %b, ptr %kernel, ptr %args, ptr %strides, i64 %j, i64 %second, i1 false, i1 %far)
  br label %done
single:
  %s = phi i64 [ 0, %loop ], [ %s1, %single ]
  %body1 <- ptr %bodies1[%s]
  call void %body1(ptr %a)
  count %s below %parts: %single, then %single.done
single.done:
  call void @move_x$X(ptr %a, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 %first, i1 false, i1 %far)
  br label %done
done:
  %more = icmp slt i64 %ahead, %n
  br i1 %more, label %loop, label %exit
exit:
  $DONE
  call void @free(ptr %release)
  ret i1 true
}}
""")

# Prefetches the memory of `count` states from `first` on while others are computed: rows of several arrays are too many
# streams for the prefetcher of the processor. Prefetching an address beyond the end of an array is harmless. For
# operands of more than 4 KB, the prefetcher is sufficient.
_FETCH = expand_ir("""
define internal void @fetch_nothing(ptr %context, i64 %first, i64 %count) #0 {
  ret void
}
define internal void @fetch(ptr %context, i64 %first, i64 %count) #0 {
entry:
  %kernel = load ptr, ptr %context, align 8
  %args <- ptr %context[1]
  %strides <- ptr %context[2]
  %n = load i64, ptr %kernel, align 8
  %table <- ptr %kernel[4]
  %end = add i64 %first, %count
  br label %operand
operand:
  %k = phi i64 [ 0, %entry ], [ %k1, %operand.done ]
  %row = getelementptr { i64, i64, i64, ptr, i64 }, ptr %table, i64 %k
  %size = load i64, ptr %row, align 8
  %row.bytes = mul i64 %size, $S
  %is.large = icmp sgt i64 %row.bytes, 4096
  %bytes = select i1 %is.large, i64 1, i64 %row.bytes
  %base <- ptr %args[%k]
  %stride <- i64 %strides[%k]
  br label %state
state:
  %i = phi i64 [ %first, %operand ], [ %i1, %state.done ]
  %start = mul i64 %i, %stride
  br label %line
line:
  %offset = phi i64 [ 0, %state ], [ %offset1, %line ]
  %byte = add i64 %start, %offset
  %p = getelementptr i8, ptr %base, i64 %byte
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 2, i32 1)
  %offset1 = add i64 %offset, 64
  %more.lines = icmp slt i64 %offset1, %bytes
  br i1 %more.lines, label %line, label %state.done
state.done:
  count %i below %end: %state, then %operand.done
operand.done:
  count %k below %n: %operand, then %exit
exit:
  ret void
}
""")
