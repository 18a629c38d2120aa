"""LLVM IR of a loop between chunks: slices its inputs, runs its body, and stores carried values and outputs.

In the code for a single state, independent iterations of a loop run in the lanes of vectors, where their items and
results are adjacent in memory. The values of the body are then on the stack, with the width of these vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from delassus.compiler.backends.steps import Chunk, LoopStep
from delassus.compiler.backends.target import Target

_UNROLLED = 16  # copies up to this number are written out
_LARGEST_SCRATCH = 64 * 1024  # bytes on the stack


@dataclass(frozen=True)
class Wide:
    """A loop whose iterations run in the lanes of vectors, for a single state.

    Attributes:
        width: The number of iterations in a vector.
        scratch: By slot, the position on the stack of a value that passes between chunks of the body.
    """

    width: int
    scratch: dict[int, int]

    def chunk_name(self, chunk: str) -> str:
        """The name of a chunk in wide code."""
        return chunk.replace("@chunk", "@wide").replace("$X", str(self.width))


def loop_widths(step: LoopStep, target: Target) -> Wide | None:
    """The wide form of a loop for a single state; None if its iterations must run one by one."""
    loop, width = step.loop, 1
    beside = step.kept.per_item == 1 and (step.items.per_item == 1 or not step.length)
    beside = beside and all(stride == 1 for _, stride, _ in step.cursors)
    if not (loop.is_map and beside) or step.body.rows:
        return None
    while 2 * width <= min(loop.count, target.lanes):
        width *= 2
    chunks = [chunk for chunk in step.body.steps if isinstance(chunk, Chunk)]
    slots = {slot for chunk in chunks for slots_of_value in chunk.stores.values() for slot in slots_of_value}
    if width == 1 or len(slots) * width * target.precision.bytes > _LARGEST_SCRATCH:
        return None
    return Wide(width, {slot: k for k, slot in enumerate(sorted(slots))})


def emit_wide_step(step: LoopStep, name: str, calls: list[str], wide: Wide) -> str:
    """The function of a wide loop for a single state.

    If the number of iterations is no multiple of the width, the last vector overlaps the previous one.
    """
    last = step.loop.count - wide.width
    text = f"""define internal void {name}(ptr %frame, ptr %unused) #0 {{
entry:
  %scratch = alloca [ {max(1, len(wide.scratch))} x <{wide.width} x $E> ], align 64
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %head ]
"""
    for place, table in (("item", step.items), ("keep", step.kept)):
        text += (
            f"  %{place}.slot = add i64 %at, {table.first}\n"
            f"  %{place} = getelementptr $E, ptr %frame, i64 %{place}.slot\n"
        )
    text += _emit_cursors(step)
    for call in calls:
        text += f"  call void {wide.chunk_name(call)}(ptr %frame, ptr %scratch, ptr %item, ptr %keep, ptr %scratch)\n"
    return (
        text
        + f"  %step = add i64 %at, {wide.width}\n"
        + f"  %over = icmp sgt i64 %step, {last}\n"
        + f"  %next = select i1 %over, i64 {last}, i64 %step\n"
        + f"  %more = icmp slt i64 %at, {last}\n"
        + "  br i1 %more, label %head, label %exit\nexit:\n  ret void\n}\n"
    )


def emit_loop_step(step: LoopStep, name: str, calls: list[str]) -> str:
    """The function of a loop, with `placeholders` for the number of lanes; `calls` are its steps."""
    loop = step.loop
    at = f"sub i64 {loop.count - 1}, %i" if loop.reverse else "add i64 0, %i"
    enter = _still("first", step.carried) + "  br i1 %first.any, label %head, label %exit" if loop.conditional else ""
    text = f"""define internal void {name}(ptr %frame, ptr %unused) #0 {{
entry:
{enter or "  br label %head"}
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %end ]
  %at = {at}
"""
    for place, table in (("item", step.items), ("keep", step.kept)):
        text += (
            f"  %{place}.offset = mul i64 %at, {table.per_item}\n"
            f"  %{place}.slot = add i64 %{place}.offset, {table.first}\n"
            f"  %{place} = getelementptr $T, ptr %frame, i64 %{place}.slot\n"
        )
    text += _emit_cursors(step) + _take(step)
    for call in calls:
        arguments = ", ptr %item, ptr %keep" if call.startswith("@chunk") else ""
        text += f"  call void {call}(ptr %frame, ptr %frame{arguments})\n"
    for n, positions in enumerate(step.copies):
        source, target = (str(first + positions.start) for first in (step.onward, step.carried))
        text += _copy(f"carry{n}." if n else "carry", len(positions), (source, 1), (target, 1))
    text += f"  br label %end\nend:\n  %i1 = add i64 %i, 1\n  %more = icmp slt i64 %i1, {loop.count}\n"
    if loop.conditional:
        text += _still("next", step.carried) + "  %again = and i1 %more, %next.any\n"
    return (
        text + f"  br i1 {'%again' if loop.conditional else '%more'}, label %head, label %exit\nexit:\n  ret void\n}}\n"
    )


def _still(label: str, carried: int) -> str:
    """IR that tests whether the first carried value is nonzero in any lane."""
    return (
        f"  %{label}.at = getelementptr $T, ptr %frame, i64 {carried}\n  %{label} = load $T, ptr %{label}.at, align "
        f"$A\n  %{label}.go = fcmp une $T %{label}, $($E 0.0$)\n  %{label}.any = $ANY%{label}.go$?\n"
    )


def _emit_cursors(step: LoopStep) -> str:
    """IR that sets the cursors of an iteration."""
    text = ""
    for source, stride, target in step.cursors:
        k = target.number
        text += (
            f"  %source{k}.at = getelementptr $T, ptr %frame, i64 {source.slot}\n"
            f"  %source{k} = load ptr, ptr %source{k}.at, align $S\n"
            f"  %way{k} = mul i64 %at, {stride}\n"
            f"  %cursor{k} = getelementptr $E, ptr %source{k}, i64 %way{k}\n"
            f"  %cursor{k}.at = getelementptr $T, ptr %frame, i64 {target.slot}\n"
            f"  store ptr %cursor{k}, ptr %cursor{k}.at, align $S\n"
        )
    return text


def _take(step: LoopStep) -> str:
    """IR that copies the values of an item that inner loops read; their slots are contiguous."""
    positions, slots = list(step.copied), list(step.copied.values())
    per_value = step.items.per_value
    if positions == list(range(len(positions))):
        return _copy("take", len(positions), ("%item.slot", per_value), (str(slots[0] if slots else 0), 1))
    return "".join(
        _copy_one(f"take{k}", str(k), ("%item.slot", per_value), (str(slot), 0)) for k, slot in step.copied.items()
    )


def _copy(label: str, count: int, source: tuple[str, int], target: tuple[str, int]) -> str:
    """IR that copies `count` values; source and target are a first slot and a stride."""
    if count <= _UNROLLED:
        return "".join(_copy_one(f"{label}{k}", str(k), source, target) for k in range(count))
    return (
        f"  br label %{label}.start\n{label}.start:\n  br label %{label}\n{label}:\n  %{label}.k = phi i64 [ 0, "
        f"%{label}.start ], [ %{label}.k1, %{label} ]\n"
        + _copy_one(label, f"%{label}.k", source, target)
        + f"  %{label}.k1 = add i64 %{label}.k, 1\n"
        f"  %{label}.more = icmp slt i64 %{label}.k1, {count}\n"
        f"  br i1 %{label}.more, label %{label}, label %{label}.done\n{label}.done:\n"
    )


def _copy_one(label: str, k: str, source: tuple[str, int], target: tuple[str, int]) -> str:
    text = ""
    for side, (first, step) in (("from", source), ("to", target)):
        text += (
            f"  %{label}.{side}.offset = mul i64 {k}, {step}\n"
            f"  %{label}.{side}.slot = add i64 %{label}.{side}.offset, {first}\n"
            f"  %{label}.{side} = getelementptr $T, ptr %frame, i64 %{label}.{side}.slot\n"
        )
    return (
        f"{text}  %{label}.value = load $T, ptr %{label}.from, align $A\n  store $T %{label}.value, ptr %{label}.to, "
        "align $A\n"
    )
