"""LLVM IR of a loop between chunks: copies items, calls the steps of the body, copies what is carried and kept."""

from delassus.compiler.schedule import LoopStep

_UNROLLED = 16  # copies up to this number are written out


def emit_loop_step(step: LoopStep, name: str, calls: list[str]) -> str:
    """The function of a loop, with the marks of `llvm_ir` where the number of lanes matters; `calls` are its steps."""
    loop = step.loop
    at = f"sub i64 {loop.count - 1}, %i" if loop.reverse else "add i64 0, %i"
    text = f"""define internal void {name}(ptr %frame, ptr %unused) #0 {{
entry:
  br label %head
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
    text += _take(step)
    for call in calls:
        own = ", ptr %item, ptr %keep" if call.startswith("@chunk") else ""
        text += f"  call void {call}(ptr %frame, ptr %frame{own})\n"
    text += _copy("carry", loop.carried, (str(step.onward), 1), (str(step.carried), 1))
    text += f"  br label %end\nend:\n  %i1 = add i64 %i, 1\n  %more = icmp slt i64 %i1, {loop.count}\n"
    if loop.conditional:
        text += (
            f"  %flag.at = getelementptr $T, ptr %frame, i64 {step.carried}\n"
            "  %flag = load $T, ptr %flag.at, align $A\n"
            "  %go = fcmp une $T %flag, $($E 0.0$)\n"
            "  %any = $ANY\n"
            "  %again = and i1 %more, %any\n"
        )
    return (
        text + f"  br i1 {'%again' if loop.conditional else '%more'}, label %head, label %exit\nexit:\n  ret void\n}}\n"
    )


def _take(step: LoopStep) -> str:
    """Copies what inner loops need of an item; their slots are in a row."""
    positions, slots = list(step.copied), list(step.copied.values())
    per_value = step.items.per_value
    if positions == list(range(len(positions))):
        return _copy("take", len(positions), ("%item.slot", per_value), (str(slots[0] if slots else 0), 1))
    return "".join(
        _copy_one(f"take{k}", str(k), ("%item.slot", per_value), (str(slot), 0)) for k, slot in step.copied.items()
    )


def _copy(label: str, count: int, source: tuple[str, int], target: tuple[str, int]) -> str:
    """Copies `count` values; source and target are a first slot and a step."""
    if count <= _UNROLLED:
        return "".join(_copy_one(f"{label}{k}", str(k), source, target) for k in range(count))
    return (
        f"  br label %{label}.start\n{label}.start:\n  br label %{label}\n{label}:\n"
        f"  %{label}.k = phi i64 [ 0, %{label}.start ], [ %{label}.k1, %{label} ]\n"
        + _copy_one(label, f"%{label}.k", source, target)
        + f"  %{label}.k1 = add i64 %{label}.k, 1\n"
        f"  %{label}.more = icmp slt i64 %{label}.k1, {count}\n"
        f"  br i1 %{label}.more, label %{label}, label %{label}.done\n{label}.done:\n"
    )


def _copy_one(label: str, k: str, source: tuple[str, int], target: tuple[str, int]) -> str:
    text = ""
    for way, (first, step) in (("from", source), ("to", target)):
        text += (
            f"  %{label}.{way}.offset = mul i64 {k}, {step}\n"
            f"  %{label}.{way}.slot = add i64 %{label}.{way}.offset, {first}\n"
            f"  %{label}.{way} = getelementptr $T, ptr %frame, i64 %{label}.{way}.slot\n"
        )
    return (
        f"{text}  %{label}.value = load $T, ptr %{label}.from, align $A\n"
        f"  store $T %{label}.value, ptr %{label}.to, align $A\n"
    )
