"""IR of a whole kernel: the loop that NumPy calls, around the compiled body.

NumPy hands a loop the addresses, the number of states and the strides. A single state runs the scalar body. More
states run the vector body, two groups of lanes at a time. The floating-point environment is saved, set to round
to nearest with subnormals as zero and no traps, and restored at the end, so that the caller's modes do not change
results and padding lanes raise no warnings.
"""

from delassus.compiler import transpose
from delassus.compiler.llvm_ir import emit_bodies, emit_streamed_body, fill_in, float_type
from delassus.compiler.program import Operand
from delassus.compiler.schedule import Schedule
from delassus.compiler.target import Target
from delassus.errors import DelassusError

LOOP = "delassus_loop"
STACK_BYTES = 64 * 1024


CACHE_BYTES = 1024 * 1024  # batches beyond this are fetched ahead
LARGEST_FRAME = 128 * 1024  # slots: one megabyte of stack for one state


def emit_module(schedule: Schedule, target: Target) -> str:
    """The module of a kernel, as text; its entry is `LOOP`."""
    if schedule.frame > LARGEST_FRAME:
        raise DelassusError(
            f"the kernel keeps {schedule.frame} values alive at once, at most {LARGEST_FRAME} are possible: "
            "split it, or make its arrays smaller."
        )
    attributes = f'noinline nounwind "min-legal-vector-width"="{64 * target.lanes}" "prefer-vector-width"="512"'
    parts = [f'target triple = "{target.triple}"\n', _DECLARATIONS]
    bodies = emit_bodies(schedule, attributes)
    for lanes in sorted({1, target.lanes}):
        parts += [fill_in(bodies, lanes), _emit_states(schedule, lanes, attributes)]
    parts.append(_emit_loop(schedule, target, attributes))
    return "".join(parts)


_DECLARATIONS = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _operands(schedule: Schedule) -> list[tuple[Operand, int, bool]]:
    """Operand, its first slot, whether it is an input; in NumPy's order."""
    program = schedule.program
    inputs = [(o, s, True) for o, s in zip(program.inputs, schedule.input_slots, strict=True)]
    return inputs + [(o, s, False) for o, s in zip(program.outputs, schedule.output_slots, strict=True)]


def _emit_states(schedule: Schedule, lanes: int, attributes: str) -> str:
    """`states_x{lanes}(args, strides, n)`: all states, in groups of one or two frames."""
    operands = _operands(schedule)
    text = transpose.emit_transposes(lanes, attributes) if lanes > 1 else ""
    stride = len(operands)  # core strides come after one stride per operand
    for k, (operand, _, _) in enumerate(operands):
        text += transpose.emit_element_copies(f"operand{k}", operand, stride, lanes, attributes)
        stride += len(operand.shape)
    if lanes > 1:
        text += _emit_fetch(operands, attributes)
        text += emit_streamed_body(len(schedule.chunks), lanes, attributes)
    text += _emit_moves(operands, lanes, True, attributes) + _emit_moves(operands, lanes, False, attributes)
    t, group = float_type(lanes), 2 * lanes
    frame_bytes = schedule.frame * lanes * transpose.WORD
    on_stack = lanes == 1 or 2 * frame_bytes <= STACK_BYTES
    frames = 1 if lanes == 1 else 2
    if on_stack:
        reserve = f"  %a = alloca {t}, i64 {frames * schedule.frame}, align 64\n  br label %ready\nready:\n"
        release = ""
    else:
        reserve = f"""  %raw = call ptr @malloc(i64 {2 * frame_bytes + 64})
  %missing = icmp eq ptr %raw, null
  br i1 %missing, label %short, label %ready
short:
  call void @states_x1(ptr %args, ptr %strides, i64 %n)
  ret void
ready:
  %address = ptrtoint ptr %raw to i64
  %up = add i64 %address, 63
  %aligned = and i64 %up, -64
  %a = inttoptr i64 %aligned to ptr
"""
        release = "  call void @free(ptr %raw)\n"
    signature = f"define internal void @states_x{lanes}(ptr %args, ptr %strides, i64 %n) {attributes} {{\nentry:\n"
    if lanes == 1:
        return (
            text
            + f"""{signature}{reserve}  br label %loop
loop:
  %i = phi i64 [ 0, %ready ], [ %next, %loop ]
  call void @in_x1(ptr %a, ptr %args, ptr %strides, i64 %i, i64 1)
  call void @body1_x1(ptr %a)
  call void @out_x1(ptr %a, ptr %args, ptr %strides, i64 %i, i64 1)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""
        )
    return (
        text
        + f"""{signature}{reserve}  %b = getelementptr {t}, ptr %a, i64 {schedule.frame}
  %streamed = icmp sgt i64 %n, {CACHE_BYTES // (transpose.WORD * sum(o.size for o, _, _ in operands))}
  br label %loop
loop:
  %i = phi i64 [ 0, %ready ], [ %next, %done ]
  %left = sub i64 %n, %i
  %few = icmp slt i64 %left, {lanes}
  %first = select i1 %few, i64 %left, i64 {lanes}
  %j = add i64 %i, {lanes}
  %rest = sub i64 %left, {lanes}
  %fewer = icmp slt i64 %rest, {lanes}
  %second = select i1 %fewer, i64 %rest, i64 {lanes}
  call void @in_x{lanes}(ptr %a, ptr %args, ptr %strides, i64 %i, i64 %first)
  %two = icmp sgt i64 %rest, 0
  br i1 %two, label %pair, label %single
pair:
  call void @in_x{lanes}(ptr %b, ptr %args, ptr %strides, i64 %j, i64 %second)
  br i1 %streamed, label %far, label %near
far:
  %ahead = add i64 %i, {group}
  call void @streamed_body2_x{lanes}(ptr %a, ptr %b, ptr %args, ptr %strides, i64 %ahead)
  br label %computed
near:
  call void @body2_x{lanes}(ptr %a, ptr %b)
  br label %computed
computed:
  call void @out_x{lanes}(ptr %a, ptr %args, ptr %strides, i64 %i, i64 %first)
  call void @out_x{lanes}(ptr %b, ptr %args, ptr %strides, i64 %j, i64 %second)
  br label %done
single:
  call void @body1_x{lanes}(ptr %a)
  call void @out_x{lanes}(ptr %a, ptr %args, ptr %strides, i64 %i, i64 %first)
  br label %done
done:
  %next = add i64 %i, {group}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
{release}  ret void
}}
"""
    )


def _emit_fetch(operands: list[tuple[Operand, int, bool]], attributes: str) -> str:
    """`fetch(args, strides, i)`: ask for the memory of state i; beyond the end of an array it does no harm."""
    text, before = "", "entry"
    for k, (operand, _, is_input) in enumerate(operands):
        text += f"""  %ap{k} = getelementptr ptr, ptr %args, i64 {k}
  %base{k} = load ptr, ptr %ap{k}, align 8
  %sp{k} = getelementptr i64, ptr %strides, i64 {k}
  %stride{k} = load i64, ptr %sp{k}, align 8
  %start{k} = mul i64 %i, %stride{k}
  br label %lines{k}
lines{k}:
  %line{k} = phi i64 [ 0, %{before} ], [ %next{k}, %lines{k} ]
  %byte{k} = add i64 %start{k}, %line{k}
  %p{k} = getelementptr i8, ptr %base{k}, i64 %byte{k}
  call void @llvm.prefetch.p0(ptr %p{k}, i32 {0 if is_input else 1}, i32 2, i32 1)
  %next{k} = add i64 %line{k}, 64
  %more{k} = icmp slt i64 %next{k}, {min(operand.size, 512) * transpose.WORD}
  br i1 %more{k}, label %lines{k}, label %end{k}
end{k}:
"""
        before = f"end{k}"
    return (
        f"define internal void @fetch(ptr %args, ptr %strides, i64 %i) {attributes} {{\nentry:\n{text}  ret void\n}}\n"
    )


def _emit_moves(operands: list[tuple[Operand, int, bool]], lanes: int, inwards: bool, attributes: str) -> str:
    """`in_x{lanes}` or `out_x{lanes}`: all operands of a group of states, between arrays and a frame."""
    word, t = transpose.WORD, float_type(lanes)
    text, core = "", len(operands)
    for k, (operand, slot, is_input) in enumerate(operands):
        axes = range(len(operand.shape))
        if is_input == inwards:
            # Contiguous if every core stride is what C order makes it.
            expected = [word] * len(operand.shape)
            for axis in reversed(axes):
                if axis + 1 < len(operand.shape):
                    expected[axis] = expected[axis + 1] * operand.shape[axis + 1]
            checks, fits = "", "true"
            for axis in axes:
                checks += (
                    f"  %w{k}.{axis} = getelementptr i64, ptr %strides, i64 {core + axis}\n"
                    f"  %c{k}.{axis} = load i64, ptr %w{k}.{axis}, align {word}\n"
                    f"  %e{k}.{axis} = icmp eq i64 %c{k}.{axis}, {expected[axis]}\n"
                    f"  %f{k}.{axis} = and i1 {fits}, %e{k}.{axis}\n"
                )
                fits = f"%f{k}.{axis}"
            direction = "in" if inwards else "out"
            fast = _fast_copy(k, operand, lanes, inwards)
            slow = (
                f"  call void @operand{k}_{direction}_x{lanes}"
                f"(ptr %slot{k}, ptr %first{k}, i64 %stride{k}, ptr %strides, i64 %states)\n"
            )
            text += (
                f"  %ap{k} = getelementptr ptr, ptr %args, i64 {k}\n"
                f"  %base{k} = load ptr, ptr %ap{k}, align {word}\n"
                f"  %sp{k} = getelementptr i64, ptr %strides, i64 {k}\n"
                f"  %stride{k} = load i64, ptr %sp{k}, align {word}\n"
                f"  %start{k} = mul i64 %i, %stride{k}\n"
                f"  %first{k} = getelementptr i8, ptr %base{k}, i64 %start{k}\n"
                f"  %slot{k} = getelementptr {t}, ptr %frame, i64 {slot}\n"
            )
            text += checks
            if fast:
                text += (
                    f"  br i1 {fits}, label %fast{k}, label %slow{k}\n"
                    f"fast{k}:\n{fast}  br label %done{k}\nslow{k}:\n{slow}  br label %done{k}\ndone{k}:\n"
                )
            else:
                text += slow
        core += len(operand.shape)
    name = "in" if inwards else "out"
    return (
        f"define internal void @{name}_x{lanes}(ptr %frame, ptr %args, ptr %strides, i64 %i, i64 %states) "
        f"{attributes} {{\n{text}  ret void\n}}\n"
    )


def _fast_copy(k: int, operand: Operand, lanes: int, inwards: bool) -> str:
    """The copy of a contiguous core; empty if it is too small for one."""
    if lanes == 1:
        source, target = (f"%first{k}", f"%slot{k}") if inwards else (f"%slot{k}", f"%first{k}")
        size = operand.size * transpose.WORD
        return f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)\n"
    if operand.size < lanes:
        return ""
    name = "pack" if inwards else "unpack"
    return (
        f"  call void @{name}_x{lanes}(ptr %slot{k}, ptr %first{k}, i64 %stride{k}, i64 {operand.size}, i64 %states)\n"
    )


def _emit_loop(schedule: Schedule, target: Target, attributes: str) -> str:
    save, restore, environment = _float_environment(target)
    wide = target.lanes
    return f"""{environment}
define void @{LOOP}(ptr %args, ptr %dimensions, ptr %strides, ptr %data) {attributes} {{
entry:
  %n = load i64, ptr %dimensions, align 8
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %start, label %exit
start:
{save}  %alone = icmp eq i64 %n, 1
  br i1 %alone, label %one, label %many
one:
  call void @states_x1(ptr %args, ptr %strides, i64 %n)
  br label %restore
many:
  call void @states_x{wide}(ptr %args, ptr %strides, i64 %n)
  br label %restore
restore:
{restore}  br label %exit
exit:
  ret void
}}
"""


def _float_environment(target: Target) -> tuple[str, str, str]:
    """IR to save and set the environment, to restore it, and the declarations for both."""
    if target.is_x86:
        masked_nearest_flushing = 0x1F80 | 0x8000 | 0x0040
        return (
            "  %saved = alloca i32, align 4\n  %set = alloca i32, align 4\n"
            "  call void @llvm.x86.sse.stmxcsr(ptr %saved)\n"
            f"  store i32 {masked_nearest_flushing}, ptr %set, align 4\n"
            "  call void @llvm.x86.sse.ldmxcsr(ptr %set)\n",
            "  call void @llvm.x86.sse.ldmxcsr(ptr %saved)\n",
            "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
        )
    flushing_nearest = 1 << 24
    return (
        "  %control = call i64 @llvm.aarch64.get.fpcr()\n  %status = call i64 @llvm.aarch64.get.fpsr()\n"
        f"  call void @llvm.aarch64.set.fpcr(i64 {flushing_nearest})\n",
        "  call void @llvm.aarch64.set.fpsr(i64 %status)\n  call void @llvm.aarch64.set.fpcr(i64 %control)\n",
        "".join(
            f"declare i64 @llvm.aarch64.get.{r}()\ndeclare void @llvm.aarch64.set.{r}(i64)\n" for r in ("fpcr", "fpsr")
        ),
    )
