"""The compiler: traces NumPy functions to graphs and compiles these to SIMD ufuncs. It knows nothing of robots."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.compiler import random, words
    from delassus.compiler.differentiation.derivatives import grad, jacobian, jvp, vjp
    from delassus.compiler.host.c99 import export_c
    from delassus.compiler.host.inputs import Bundle, Group, Input
    from delassus.compiler.host.kernel import kernel
    from delassus.compiler.host.threads import threads
    from delassus.compiler.host.versions import clear_kernels, kernel_memory
    from delassus.compiler.tracing.flow.branch import cond
    from delassus.compiler.tracing.flow.control import map, scan, while_loop
    from delassus.compiler.tracing.flow.custom import custom_tangent

__all__ = [
    "Bundle",
    "Group",
    "Input",
    "clear_kernels",
    "cond",
    "custom_tangent",
    "export_c",
    "grad",
    "jacobian",
    "jvp",
    "kernel",
    "kernel_memory",
    "map",
    "random",
    "scan",
    "threads",
    "vjp",
    "while_loop",
    "words",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "compiler.differentiation.derivatives": "grad jacobian jvp vjp",
            "compiler.host.c99": "export_c",
            "compiler.host.inputs": "Bundle Group Input",
            "compiler.host.kernel": "kernel",
            "compiler.host.threads": "threads",
            "compiler.host.versions": "clear_kernels kernel_memory",
            "compiler.random": "",
            "compiler.words": "",
            "compiler.tracing.flow.branch": "cond",
            "compiler.tracing.flow.control": "map scan while_loop",
            "compiler.tracing.flow.custom": "custom_tangent",
        },
    )
