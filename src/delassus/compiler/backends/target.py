"""The machine for which code is generated."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache, cached_property

import llvmlite.binding as llvm
from numpy.typing import DTypeLike

from delassus.compiler.graph.precision import DOUBLE, Precision
from delassus.errors import BadArgument, DelassusError


@dataclass(frozen=True)
class Target:
    """A CPU for the code generator; part of every kernel's key.

    Attributes:
        triple: LLVM's name of the platform.
        cpu: LLVM's name of the processor.
        features: Its instruction sets, in LLVM's notation.
        lanes: The number of states that a vector instruction processes.
        opt: LLVM's code generation level; 0 compiles faster and runs slower.
        precision: The format of numbers. A vector register holds twice as many of single precision.
    """

    triple: str
    cpu: str
    features: str
    lanes: int
    opt: int = 2
    precision: Precision = DOUBLE

    @classmethod
    def host(cls) -> Target:
        """This machine, with its widest vectors."""
        return _host()

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """All numbers of lanes that this CPU has instructions for, in descending order."""
        registers = (64, 32, 16)  # bytes
        widest = _widest_register(self.features)
        return tuple(size // self.precision.bytes for size in registers if size <= widest)

    def with_lanes(self, lanes: int) -> Target:
        """This target with narrower vectors; 1 for scalar code only."""
        if lanes not in (*self.widths, 1):
            possible = ", ".join(map(str, (*self.widths, 1)))
            raise DelassusError(
                f"the number of lanes is {lanes}; on {self.cpu} it must be one of {possible}. Correct or unset "
                "DELASSUS_LANES.",
                code="wrong-machine",
            )
        return replace(self, lanes=lanes)

    def with_dtype(self, dtype: DTypeLike) -> Target:
        """This target for float64 or float32, with vectors of the same number of bytes; scalar code stays scalar."""
        precision = Precision.of(dtype)
        lanes = self.lanes if self.lanes == 1 else self.lanes * self.precision.bytes // precision.bytes
        return replace(self, precision=precision, lanes=lanes)

    def with_opt(self, opt: int) -> Target:
        """This target at another code generation level, 0 to 3."""
        if opt not in (0, 1, 2, 3):
            raise BadArgument(f"the code generation level is {opt}; it must be 0, 1, 2 or 3.", code="out-of-range")
        return replace(self, opt=opt)

    @property
    def is_here(self) -> bool:
        """Whether the machine of this process can run code for this target."""
        host = _host()
        missing = _enabled_features(self.features) - _enabled_features(host.features)
        widths = (*host.with_dtype(self.precision.dtype).widths, 1)
        return (self.triple, self.cpu) == (host.triple, host.cpu) and not missing and self.lanes in widths

    @property
    def fma(self) -> bool:
        """Whether the CPU multiplies and adds in one instruction."""
        return self.is_arm or "+fma" in _enabled_features(self.features)

    @property
    def rounds(self) -> bool:
        """Whether the CPU rounds to an integer in one instruction."""
        return self.is_arm or "+sse4.1" in _enabled_features(self.features) or _widest_register(self.features) > 16

    @property
    def is_x86(self) -> bool:
        """Whether the processor is an x86-64."""
        return self.triple.startswith(("x86_64", "amd64"))

    @property
    def is_arm(self) -> bool:
        """Whether the processor is a 64-bit ARM."""
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def attributes(self) -> str:
        """The attribute group `#0` of every function; by default, LLVM would prefer narrower vectors than possible."""
        widths = f'"min-legal-vector-width"="{8 * self.precision.bytes * self.lanes}" "prefer-vector-width"="512"'
        return f"attributes #0 = {{ noinline nounwind {widths} }}\n"

    @property
    def is_compact(self) -> bool:
        """Whether code can address its constants by offsets of 32 bits, since it is loaded next to them."""
        return self.is_x86 and "linux" in self.triple

    def machine(self, closed: bool = False) -> llvm.TargetMachine:
        """LLVM's code generator for this target; `closed` says that the code refers to nothing outside of its module.

        Other code may be loaded anywhere, and loads the address of each constant by an instruction of ten bytes.
        """
        compact = closed and self.is_compact
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu,
            features=self.features,
            opt=self.opt,
            reloc="pic" if compact else "default",
            codemodel="small" if compact else "jitdefault",
            jit=True,
        )


def _enabled_features(features: str) -> set[str]:
    return {feature for feature in features.split(",") if feature.startswith("+")}


def _widest_register(features: str) -> int:
    """Bytes of the widest vectors."""
    enabled = _enabled_features(features)
    return 64 if "+avx512f" in enabled and "+avx512dq" in enabled else 32 if "+avx2" in enabled else 16


@cache
def _host() -> Target:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, features = llvm.get_process_triple(), llvm.get_host_cpu_features().flatten()
    setting = os.environ.get("DELASSUS_LANES", "")
    target = Target(triple, llvm.get_host_cpu_name(), features, _widest_register(features) // DOUBLE.bytes)
    if not (target.is_x86 or target.is_arm):
        raise DelassusError(
            f"this machine is {triple}; Delassus generates code for 64-bit x86 and ARM processors.",
            code="wrong-machine",
        )
    if not setting:
        return target
    if not setting.isdecimal():
        raise DelassusError(
            f"DELASSUS_LANES is {setting!r}; it must be a number of lanes, such as {target.lanes}, or unset.",
            code="wrong-machine",
        )
    return target.with_lanes(int(setting))
