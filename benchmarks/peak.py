"""The floating-point peak of one core: independent fused multiply-adds in registers, nothing else."""

import ctypes

from delassus.compiler.backends import native
from delassus.compiler.backends.target import Target

CHAINS = 16  # enough to hide the latency of two units
ROUNDS = 100_000


class FmaLoop:
    """A native loop of fused multiply-adds at the CPU's widest vectors."""

    def __init__(self, target: Target) -> None:
        t = f"<{target.lanes} x double>"
        chains = range(CHAINS)
        phis = "".join(f"  %x{k} = phi {t} [ %start, %entry ], [ %y{k}, %loop ]\n" for k in chains)
        fmas = "".join(f"  %y{k} = call {t} @llvm.fma.v{target.lanes}f64({t} %x{k}, {t} %a, {t} %b)\n" for k in chains)
        sums = "".join(f"  %s{k + 1} = fadd {t} %s{k}, %y{k}\n" for k in chains)
        text = f"""
declare {t} @llvm.fma.v{target.lanes}f64({t}, {t}, {t})
define void @run(ptr %memory, i64 %n) nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" {{
entry:
  %start = load {t}, ptr %memory, align 8
  %a = fadd {t} %start, splat (double 0.5)
  %b = fadd {t} %start, splat (double 0.25)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}{fmas}  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  %s0 = fadd {t} %start, %start
{sums}  store {t} %s{CHAINS}, ptr %memory, align 8
  ret void
}}
"""
        self._code = native.load([native.emit_object(text, target)], target)
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self._code.address("run"))
        self._memory = (ctypes.c_double * target.lanes)()
        self.flops = 2 * target.lanes * CHAINS * ROUNDS

    def __call__(self) -> None:
        self._memory[:] = [0.0] * len(self._memory)
        self._run(ctypes.addressof(self._memory), ROUNDS)
