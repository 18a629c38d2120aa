"""LLVM IR that writes a row of a table at an index known at run time, which may differ between lanes."""

from typing import Final

from delassus.compiler.backends.steps import ScatterStep

SCATTER: Final = "declare void @llvm.masked.scatter.$N.v$Xp0($T, <$X x ptr>, i32, $B)\n"
"""The intrinsic that it calls, for more than one lane."""


def emit_scatter_step(step: ScatterStep, name: str) -> str:
    """The function of a scatter, with `placeholders`: all values are read before any is written."""
    table = step.table
    text = f"define internal void {name}(ptr %frame, ptr %unused) #0 {{\n"
    for label, slot in (("index", step.index), *((f"new{k}", slot) for k, slot in enumerate(step.row))):
        text += f"  %{label}.at = getelementptr $T, ptr %frame, i64 {slot}\n"
        text += f"  %{label} = load $T, ptr %{label}.at, align $A\n"
    text += (
        "  %row = fptosi $T %index to $J\n"
        "  %lanes = mul $J %row, $(i32 $X$)\n"
        f"  %steps = mul $J %lanes, $(i32 {table.per_item}$)\n"
        "  %place = add $J %steps, $L\n"
    )
    for k in range(len(step.row)):
        text += (
            f"  %start{k} = getelementptr $T, ptr %frame, i64 {table.first + k * table.per_value}\n"
            f"  %to{k} = getelementptr $E, ptr %start{k}, $J %place\n"
            f"  $|%new{k}$,%to{k}$/\n"
        )
    return text + "  ret void\n}\n"
