"""IR of the loop that NumPy calls, around the compiled body of any kernel.

NumPy hands a loop the addresses of the arrays, the number of states, the strides, and a pointer of our own, which
here leads to the kernel's descriptor (see `runtime`). A single state runs the scalar body. More states run the
vector body, two groups of lanes at a time. The loop finds either code by a pointer in the descriptor, and asks Python
to make what is not there yet. The floating-point environment is saved, set to round to nearest with subnormals as zero
and no traps, and restored at the end, so that the caller's modes do not change results and padding lanes raise no
warnings.
"""

from dataclasses import dataclass

from delassus.compiler.backends import transpose
from delassus.compiler.backends.llvm_marks import fill_in
from delassus.compiler.backends.shared_ir import SHARE, WITH_SHARED
from delassus.compiler.backends.streaming import SMALLEST_ROW, emit_stream
from delassus.compiler.backends.target import Target

LOOP = "delassus_loop"
STATES = "delassus_states"
STACK_BYTES = 64 * 1024  # frames beyond this come from the heap


def emit_loop(target: Target) -> str:
    """The module of what NumPy calls, as text; its entry is `LOOP`."""
    environment = _float_environment(target)
    run = _RUN.replace("$KEEP", environment.keep).replace("$SAVE", environment.save)
    run = run.replace("$RESTORE", environment.restore)
    shared = fill_in(transpose.ELEMENTS + WITH_SHARED, 1, target.precision)
    loop = (shared + _LOOP).replace("$MANY", str(int(target.lanes > 1)))
    return _DECLARATIONS + environment.declarations + run + loop + target.attributes


def emit_states(target: Target, lanes: int) -> str:
    """The module that takes states through frames, for single states or for all lanes; its entry is `STATES`."""
    parts = [_DECLARATIONS, fill_in(transpose.ELEMENTS, 1, target.precision)]
    if lanes == 1:
        parts += [
            fill_in(text, 1, target.precision) for text in (_MOVE.replace("$COPY", _COPY_ONE), SHARE, _STATES_ONE)
        ]
    else:
        two_values = str(2 * lanes * target.precision.bytes)
        stream, finish = (_STREAM, "call void @finish_streams()") if target.is_x86 else (_UNPACK, "")
        copy = _COPY_MANY.replace("$H", str(transpose.block_size(lanes))).replace("$STREAM", stream)
        states = _STATES_MANY.replace("$F", two_values).replace("$DONE", finish)
        group = (_FETCH, _MOVE.replace("$COPY", copy), SHARE, states)
        parts.append(transpose.emit_copies(lanes, target.precision))
        parts += [emit_stream(target)] if target.is_x86 else []
        parts += [fill_in(text, lanes, target.precision) for text in group]
    return "".join((*parts, target.attributes))


_DECLARATIONS = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

# All inputs (or outputs) of a group of states, from the arrays to a frame (or back). Contiguous if every core
# stride is what C order makes it. Shared ones, of size 0 here, are not moved.
_MOVE = """
define internal void @move_x$X(ptr %frame, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 %states, i1 %inwards,
                              i1 %far) #0 {
entry:
  %n = load i64, ptr %kernel, align 8
  %inputs.at = getelementptr i64, ptr %kernel, i64 1
  %inputs = load i64, ptr %inputs.at, align 8
  %table.at = getelementptr i64, ptr %kernel, i64 4
  %table = load ptr, ptr %table.at, align 8
  br label %operand
operand:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %core = phi i64 [ %n, %entry ], [ %core1, %next ]
  %row = getelementptr { i64, i64, i64, ptr, i64 }, ptr %table, i64 %k
  %size = load i64, ptr %row, align 8
  %slot.at = getelementptr i64, ptr %row, i64 1
  %slot = load i64, ptr %slot.at, align 8
  %axes.at = getelementptr i64, ptr %row, i64 2
  %axes = load i64, ptr %axes.at, align 8
  %shape.at = getelementptr i64, ptr %row, i64 3
  %shape = load ptr, ptr %shape.at, align 8
  %core1 = add i64 %core, %axes
  %is.input = icmp slt i64 %k, %inputs
  %right.way = icmp eq i1 %is.input, %inwards
  %is.moved = icmp ne i64 %size, 0
  %mine = and i1 %right.way, %is.moved
  br i1 %mine, label %move, label %next
move:
  %base.at = getelementptr ptr, ptr %args, i64 %k
  %base = load ptr, ptr %base.at, align 8
  %stride.at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.at, align 8
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
  %a = sub i64 %left, 1
  %step.at = getelementptr i64, ptr %cores, i64 %a
  %step = load i64, ptr %step.at, align 8
  %length.at = getelementptr i64, ptr %shape, i64 %a
  %length = load i64, ptr %length.at, align 8
  %expected1 = mul i64 %expected, %length
  %as.expected = icmp eq i64 %step, %expected
  %trivial = icmp eq i64 %length, 1
  %same = or i1 %as.expected, %trivial
  br i1 %same, label %check, label %scattered
contiguous:
$COPY
scattered:
  call void @elements(ptr %place, i64 $X, ptr %array, i64 %stride, ptr %cores, ptr %shape, i64 %axes, i64 %size,
                      i64 %states, i1 %inwards)
  br label %next
next:
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %operand, label %exit
exit:
  ret void
}
"""

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

# Code (see `runtime`): the function below, start, number of parts, their body1, their body2, bytes of the largest pair.
# One state after the other. Without heap the frame of a single state still fits on the stack.
_STATES_ONE = f"""
define i1 @{STATES}(ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n) #0 {{
entry:
  %slots.at = getelementptr i64, ptr %kernel, i64 2
  %slots = load i64, ptr %slots.at, align 8
  %parts.at = getelementptr i64, ptr %code, i64 2
  %parts = load i64, ptr %parts.at, align 8
  %bodies.at = getelementptr i64, ptr %code, i64 3
  %bodies = load ptr, ptr %bodies.at, align 8
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
  %start.at = getelementptr i64, ptr %code, i64 1
  %start = load ptr, ptr %start.at, align 8
  call void %start(ptr %frame)
  call void @share_x1(ptr %frame, ptr %kernel, ptr %args)
  br label %loop
loop:
  %i = phi i64 [ 0, %ready ], [ %next, %done ]
  call void @move_x1(ptr %frame, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 1, i1 true, i1 false)
  br label %part
part:
  %p = phi i64 [ 0, %loop ], [ %p1, %part ]
  %body.at = getelementptr ptr, ptr %bodies, i64 %p
  %body = load ptr, ptr %body.at, align 8
  call void %body(ptr %frame)
  %p1 = add i64 %p, 1
  %more.parts = icmp slt i64 %p1, %parts
  br i1 %more.parts, label %part, label %done
done:
  call void @move_x1(ptr %frame, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 1, i1 false, i1 false)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  call void @free(ptr %release)
  ret i1 true
}}
"""

# False if there is no memory for frames of all lanes.
_STATES_MANY = f"""
define i1 @{STATES}(ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n) #0 {{
entry:
  %slots.at = getelementptr i64, ptr %kernel, i64 2
  %slots = load i64, ptr %slots.at, align 8
  %near.at = getelementptr i64, ptr %kernel, i64 3
  %near = load i64, ptr %near.at, align 8
  %parts.at = getelementptr i64, ptr %code, i64 2
  %parts = load i64, ptr %parts.at, align 8
  %bodies1.at = getelementptr i64, ptr %code, i64 3
  %bodies1 = load ptr, ptr %bodies1.at, align 8
  %bodies2.at = getelementptr i64, ptr %code, i64 4
  %bodies2 = load ptr, ptr %bodies2.at, align 8
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
  %most.at = getelementptr i64, ptr %code, i64 5
  %most = load i64, ptr %most.at, align 8
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
  %start.at = getelementptr i64, ptr %code, i64 1
  %start = load ptr, ptr %start.at, align 8
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
  %body2.at = getelementptr ptr, ptr %bodies2, i64 %p
  %body2 = load ptr, ptr %body2.at, align 8
  call void %body2(ptr %a, ptr %b, ptr %fetch, ptr %context, i64 %ahead)
  %p1 = add i64 %p, 1
  %more.pairs = icmp slt i64 %p1, %parts
  br i1 %more.pairs, label %pair.part, label %pair.done
pair.done:
  call void @move_x$X(ptr %a, ptr %kernel, ptr %args, ptr %strides, i64 %i, i64 %first, i1 false, i1 %far)
  call void @move_x$X(ptr %b, ptr %kernel, ptr %args, ptr %strides, i64 %j, i64 %second, i1 false, i1 %far)
  br label %done
single:
  %s = phi i64 [ 0, %loop ], [ %s1, %single ]
  %body1.at = getelementptr ptr, ptr %bodies1, i64 %s
  %body1 = load ptr, ptr %body1.at, align 8
  call void %body1(ptr %a)
  %s1 = add i64 %s, 1
  %more.parts = icmp slt i64 %s1, %parts
  br i1 %more.parts, label %single, label %single.done
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
"""

# The memory of `count` states from `first` on, asked for while others are computed: rows of several arrays are too
# many streams for the processor to foresee. An address beyond the end of an array does no harm. Operands of more than
# 4 KB are streams that it does foresee.
_FETCH = """
define internal void @fetch_nothing(ptr %context, i64 %first, i64 %count) #0 {
  ret void
}
define internal void @fetch(ptr %context, i64 %first, i64 %count) #0 {
entry:
  %kernel = load ptr, ptr %context, align 8
  %args.at = getelementptr ptr, ptr %context, i64 1
  %args = load ptr, ptr %args.at, align 8
  %strides.at = getelementptr ptr, ptr %context, i64 2
  %strides = load ptr, ptr %strides.at, align 8
  %n = load i64, ptr %kernel, align 8
  %table.at = getelementptr i64, ptr %kernel, i64 4
  %table = load ptr, ptr %table.at, align 8
  %end = add i64 %first, %count
  br label %operand
operand:
  %k = phi i64 [ 0, %entry ], [ %k1, %operand.done ]
  %row = getelementptr { i64, i64, i64, ptr, i64 }, ptr %table, i64 %k
  %size = load i64, ptr %row, align 8
  %row.bytes = mul i64 %size, $S
  %is.large = icmp sgt i64 %row.bytes, 4096
  %bytes = select i1 %is.large, i64 1, i64 %row.bytes
  %base.at = getelementptr ptr, ptr %args, i64 %k
  %base = load ptr, ptr %base.at, align 8
  %stride.at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.at, align 8
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
  %i1 = add i64 %i, 1
  %more.states = icmp slt i64 %i1, %end
  br i1 %more.states, label %state, label %operand.done
operand.done:
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %operand, label %exit
exit:
  ret void
}
"""

# Runs the code number %width of a kernel. If it is missing, Python is asked for it: before the modes of arithmetic
# change, with Python's lock, and not if an exception is on its way already. Making code computes, too, so that flags of
# arithmetic are restored, which NumPy looks at in the end. Without code in the end, an exception is set, which NumPy
# raises. False if the code ran out of memory.
_RUN = """
define internal i1 @run(ptr %kernel, i64 %width, ptr %args, ptr %strides, i64 %n) #0 {
entry:
  %place = add i64 %width, 5
  %code.at = getelementptr ptr, ptr %kernel, i64 %place
  %found = load atomic ptr, ptr %code.at acquire, align 8
  %missing = icmp eq ptr %found, null
  br i1 %missing, label %ask, label %ready
ask:
$KEEP  %maker.place = add i64 %width, 7
  %maker.at = getelementptr ptr, ptr %kernel, i64 %maker.place
  %maker = load ptr, ptr %maker.at, align 8
  %python.at = getelementptr ptr, ptr %kernel, i64 9
  %python = load ptr, ptr %python.at, align 8
  %lock = load ptr, ptr %python, align 8
  %occurred.at = getelementptr ptr, ptr %python, i64 1
  %occurred = load ptr, ptr %occurred.at, align 8
  %call.at = getelementptr ptr, ptr %python, i64 2
  %call = load ptr, ptr %call.at, align 8
  %drop.at = getelementptr ptr, ptr %python, i64 3
  %drop = load ptr, ptr %drop.at, align 8
  %unlock.at = getelementptr ptr, ptr %python, i64 4
  %unlock = load ptr, ptr %unlock.at, align 8
  %state = call i32 %lock()
  %error = call ptr %occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %make, label %asked
make:
  %result = call ptr %call(ptr %maker)
  call void %drop(ptr %result)
  br label %asked
asked:
  call void %unlock(i32 %state)
$RESTORE  %made = load atomic ptr, ptr %code.at acquire, align 8
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %exit, label %ready
ready:
  %code = phi ptr [ %found, %entry ], [ %made, %asked ]
  %states = load ptr, ptr %code, align 8
  %done = call i1 @within(ptr %states, ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n)
  ret i1 %done
exit:
  ret i1 true
}
define internal i1 @within(ptr %states, ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n) #0 {
$SAVE  %done = call i1 %states(ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n)
$RESTORE  ret i1 %done
}
"""

_LOOP = f"""
define void @{LOOP}(ptr %args, ptr %dimensions, ptr %strides, ptr %kernel) #0 {{
entry:
  %n = load i64, ptr %dimensions, align 8
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %start, label %exit
start:
  %shared.at = getelementptr i64, ptr %kernel, i64 11
  %shared = load i64, ptr %shared.at, align 8
  %any.shared = icmp ne i64 %shared, 0
  br i1 %any.shared, label %with.shared, label %without
with.shared:
  call void @with_shared(ptr %kernel, ptr %args, ptr %strides, i64 %n)
  br label %exit
without:
  %alone = icmp eq i64 %n, 1
  br i1 %alone, label %one, label %many
many:
  %done = call i1 @run(ptr %kernel, i64 $MANY, ptr %args, ptr %strides, i64 %n)
  br i1 %done, label %exit, label %one
one:
  %always = call i1 @run(ptr %kernel, i64 0, ptr %args, ptr %strides, i64 %n)
  br label %exit
exit:
  ret void
}}
"""


@dataclass(frozen=True)
class _Environment:
    """IR that keeps the floating-point environment, keeps and sets it, restores it; and the declarations for that."""

    keep: str
    save: str
    restore: str
    declarations: str


def _float_environment(target: Target) -> _Environment:
    if target.is_x86:
        masked_nearest_flushing = 0x1F80 | 0x8000 | 0x0040
        keep = "  %saved = alloca i32, align 4\n  call void @llvm.x86.sse.stmxcsr(ptr %saved)\n"
        return _Environment(
            keep,
            f"{keep}  %set = alloca i32, align 4\n"
            f"  store i32 {masked_nearest_flushing}, ptr %set, align 4\n"
            "  call void @llvm.x86.sse.ldmxcsr(ptr %set)\n",
            "  call void @llvm.x86.sse.ldmxcsr(ptr %saved)\n",
            "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
        )
    flushing_nearest = 1 << 24
    keep = "  %control = call i64 @llvm.aarch64.get.fpcr()\n  %status = call i64 @llvm.aarch64.get.fpsr()\n"
    return _Environment(
        keep,
        f"{keep}  call void @llvm.aarch64.set.fpcr(i64 {flushing_nearest})\n",
        "  call void @llvm.aarch64.set.fpsr(i64 %status)\n  call void @llvm.aarch64.set.fpcr(i64 %control)\n",
        "".join(
            f"declare i64 @llvm.aarch64.get.{r}()\ndeclare void @llvm.aarch64.set.{r}(i64)\n" for r in ("fpcr", "fpsr")
        ),
    )
