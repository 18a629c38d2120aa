"""IR that saves and sets the modes of floating-point arithmetic: round to nearest, subnormals as zero, no traps."""

from dataclasses import dataclass

from delassus.compiler.backends.target import Target


@dataclass(frozen=True)
class FloatEnvironment:
    """IR for the floating-point environment.

    Attributes:
        keep: Saves it.
        save: Saves it, and sets the modes of kernels.
        restore: Restores it.
        declarations: Declarations of the intrinsics.
    """

    keep: str
    save: str
    restore: str
    declarations: str


def float_environment(target: Target) -> FloatEnvironment:
    """The IR for a machine."""
    if target.is_x86:
        masked_nearest_flushing = 0x1F80 | 0x8000 | 0x0040
        keep = "  %saved = alloca i32, align 4\n  call void @llvm.x86.sse.stmxcsr(ptr %saved)\n"
        return FloatEnvironment(
            keep,
            f"{keep}  %set = alloca i32, align 4\n  store i32 {masked_nearest_flushing}, ptr %set, align 4\n  call "
            "void @llvm.x86.sse.ldmxcsr(ptr %set)\n",
            "  call void @llvm.x86.sse.ldmxcsr(ptr %saved)\n",
            "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
        )
    flushing_nearest = 1 << 24
    keep = "  %control = call i64 @llvm.aarch64.get.fpcr()\n  %status = call i64 @llvm.aarch64.get.fpsr()\n"
    return FloatEnvironment(
        keep,
        f"{keep}  call void @llvm.aarch64.set.fpcr(i64 {flushing_nearest})\n",
        "  call void @llvm.aarch64.set.fpsr(i64 %status)\n  call void @llvm.aarch64.set.fpcr(i64 %control)\n",
        "".join(
            f"declare i64 @llvm.aarch64.get.{r}()\ndeclare void @llvm.aarch64.set.{r}(i64)\n" for r in ("fpcr", "fpsr")
        ),
    )
