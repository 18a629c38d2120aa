"""Object code for other systems asks for nothing that a Python process there does not have."""

import struct

import llvmlite.binding as llvm
import pytest

import delassus as dl
import delassus.numpy as np
from delassus.compiler import random
from delassus.compiler.backends.llvm.module import emit_module
from delassus.compiler.backends.llvm.numpy_loop import emit_loop
from delassus.compiler.backends.llvm.states import emit_states
from delassus.compiler.backends.native import emit_assembly, emit_object
from delassus.compiler.backends.schedule import schedule
from delassus.compiler.backends.target import Target
from delassus.compiler.functions.lower import lower
from delassus.compiler.host.bound import bind
from delassus.model.generators import chain

TARGETS = {
    "aarch64 Linux": Target("aarch64-unknown-linux-gnu", "cortex-a72", "+neon", 2),
    "arm64 macOS": Target("arm64-apple-darwin23.0.0", "apple-m1", "+neon", 2),
    "x86-64 Windows, AVX-512": Target(
        "x86_64-pc-windows-msvc", "skylake-avx512", "+avx,+avx2,+fma,+avx512f,+avx512dq", 8
    ),
    "x86-64 Windows, AVX2": Target("x86_64-pc-windows-msvc", "x86-64-v3", "+avx,+avx2,+fma", 4),
    "x86-64 Windows, SSE2": Target("x86_64-pc-windows-msvc", "x86-64", "+sse2", 2),
}

AVAILABLE = {"malloc", "free", "memcpy"}
"""Every C library exports them, and it is part of every Python process."""

AVAILABLE_ON_WINDOWS = AVAILABLE | {"__chkstk"}
"""It touches the pages of a new stack frame. LLVM carries it along for its own just-in-time compilers (its list of
explicit symbols), and ntdll, which every process loads, exports it."""


@pytest.fixture(scope="module", autouse=True)
def _every_code_generator():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@dl.kernel("(3),(3)->(3),(3)")
def everything(model, x, y):
    """Every elementary function, so that each could ask for a library."""
    bounded, positive = x / np.hypot(x, y), np.sqrt(abs(x)) + 1.0
    circular = np.sin(x) + np.cos(y) * np.tan(x) - np.arctan(y) + np.arcsin(bounded) * np.arccos(bounded)
    growing = np.exp(x) + np.expm1(y) + np.sinh(x) * np.cosh(y) - np.tanh(x)
    slow = np.log(positive) + np.log1p(positive) + positive**y
    whole = np.floor(x) + np.ceil(y) * np.rint(x) - np.trunc(y) + x % y + x // y
    whole = whole + np.take(np.arange(20.0), x) + np.take(np.outer(x, y), y)
    whole = whole + random.uniform(x[0], y[0]) + random.normal(3.0, y[1])
    return np.where(x > y, circular, np.minimum(growing, slow)), np.arctan2(x, y) + np.sign(x) * whole


def kernel_code(kernel, model, target):
    return emit_object(emit_module(schedule(lower(kernel.program(model), target.fma)), target), target)


# --- the symbols that object code refers to without having them ---------------------------------------------------


def wanted(code: bytes) -> set[str]:
    if code.startswith(b"\x7fELF"):
        return elf(code)
    return mach_o(code) if code.startswith(b"\xcf\xfa\xed\xfe") else coff(code)


def text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def elf(code: bytes) -> set[str]:
    """Of the symbol table (section type 2), the global symbols of section 0."""
    (start,), (count,) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<H", code, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * k) for k in range(count)]
    names = set()
    for _, kind, _, _, offset, size, link, *_ in sections:
        for at in range(offset, offset + size, 24) if kind == 2 else ():
            name, _, _, section = struct.unpack_from("<IBBH", code, at)
            if section == 0 and name:
                names.add(text(code, sections[link][4] + name))
    return names


def mach_o(code: bytes) -> set[str]:
    """Of the symbol table (load command 2), the symbols without type; the names have an underscore in front."""
    at, names = 32, set()
    for _ in range(struct.unpack_from("<I", code, 16)[0]):
        command, size, symbols, count, strings = struct.unpack_from("<5I", code, at)
        for k in range(count) if command == 2 else ():
            name, kind = struct.unpack_from("<IB", code, symbols + 16 * k)
            if kind & 0x0E == 0:
                names.add(text(code, strings + name).removeprefix("_"))
        at += size
    return names


def coff(code: bytes) -> set[str]:
    """Symbols of section 0 that some relocation uses: `_fltused` is a mark for Microsoft's linker, used by none."""
    _, sections, _, table, count, header = struct.unpack_from("<HHIIIH", code)
    used, names = set(), set()
    for k in range(sections):
        relocations, _, number = struct.unpack_from("<IIH", code, 20 + header + 40 * k + 24)
        used |= {struct.unpack_from("<I", code, relocations + 10 * i + 4)[0] for i in range(number)}
    for k in used:
        short, long, _, section = struct.unpack_from("<IIIh", code, table + 18 * k)
        if section == 0:
            at = table + 18 * k
            names.add(code[at : at + 8].rstrip(b"\0").decode() if short else text(code, table + 18 * count + long))
    return names


def available(target: Target) -> set[str]:
    return AVAILABLE_ON_WINDOWS if "windows" in target.triple else AVAILABLE


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_loop_asks_for_memory_only(target):
    for lanes in {1, target.lanes}:
        symbols = wanted(emit_object(emit_states(target, lanes), target))
        assert {"malloc", "free"} <= symbols <= available(target)
    assert not wanted(emit_object(emit_loop(target), target)) - available(target)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize(("kernel", "model"), [(everything, None), (dl.aba, chain(12))], ids=["functions", "aba"])
def test_a_kernel_calls_no_library(kernel, model, target):
    assert wanted(kernel_code(kernel, model, target)) <= available(target) - AVAILABLE


def test_a_kernel_for_x86_linux_reaches_its_constants_by_short_offsets():
    target = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx,+avx2,+fma", 4)
    text = emit_module(schedule(lower(everything.program(None), target.fma)), target)
    assembly = emit_assembly(text, target)
    assert "(%rip)" in assembly
    assert "$.LC" not in assembly  # the address of a constant in memory, as an immediate number


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_bound_call_asks_for_what_it_is_given(target):
    assert wanted(emit_object(bind._TRAMPOLINES, target.with_lanes(1))) == set(bind._SYMBOLS)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_call_of_the_c_library_would_be_noticed(target):
    code = "declare double @sin(double)\ndefine double @f(double %x) {\n  %y = call double @sin(double %x)\n"
    assert wanted(emit_object(code + "  ret double %y\n}\n", target)) == {"sin"}
