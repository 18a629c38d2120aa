"""`export_c` writes a kernel as C99 (see `backends.c_program`), with a program that checks it.

The check program contains stored states, and the outputs of the interpreter for them.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delassus.compiler.backends.c_program import emit_c, emit_check
from delassus.compiler.backends.c_text import (
    c_name,
)
from delassus.compiler.graph.program import Operand, field_name
from delassus.compiler.host.kernel import Kernel, check_kernel
from delassus.errors import BadArgument


def export_c(
    kernel: Kernel[..., Any],
    model: Any,
    folder: str | PathLike[str],
    *,
    name: str | None = None,
    fma: bool = True,
    states: int = 10,
    dtype: DTypeLike = np.float64,
    inputs: Sequence[str] = (),
    **options: Any,
) -> tuple[Path, ...]:
    """Write a kernel for a model as C99 into a folder, which is created if needed; returns the paths of the files.

    Args:
        kernel: The kernel, such as `dl.aba`.
        model: The model for which it is compiled.
        folder: Folder of `name.h`, `name.c` and `name_check.c`; existing files are replaced.
        name: The name of the C function, by default the kernel's.
        fma: Whether products are fused into sums by fma(), which is slow on processors without this instruction.
        states: Number of random states in the check program; 0 for no check program.
        dtype: The type of all numbers, np.float64 (double in C) or np.float32 (float).
        inputs: Optional inputs of the C function, after the others, in the kernel's order.
        options: Options of the kernel.

    >>> import tempfile
    >>> [path.suffix for path in dl.compiler.export_c(dl.aba, dl.load("pendulum"), tempfile.mkdtemp(), states=0)]
    ['.h', '.c']
    """
    check_kernel(kernel)
    conflicts = {"name", "fma", "states", "folder"} & set(kernel.options)
    if conflicts:
        raise BadArgument(
            f"{kernel.name} has an option {min(conflicts)!r}, which is also one of export_c; use emit_c on its program "
            "instead.",
            code="conflicting-arguments",
        )
    program = kernel.program(model, dtype, inputs=inputs, **options)
    function = c_name(kernel.name if name is None else name, "the function", function=True)
    header, source = emit_c(program, function, fma, about=_about(kernel, model, options, fma), dtype=dtype)
    texts = {f"{function}.h": header, f"{function}.c": source}
    if states > 0:
        states_of_check = random_states(kernel, model, states, inputs=inputs)
        texts[f"{function}_check.c"] = emit_check(program, function, states_of_check, fma, dtype)
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (directory / file).write_text(text, encoding="utf-8", newline="\n")
    return tuple(directory / file for file in texts)


def _about(kernel: Kernel[..., Any], model: Any, options: dict[str, Any], fma: bool) -> str:
    """The description in the header: the kernel, the model's name if it has one, the options, the docstring."""
    model_name = getattr(model, "name", None)
    model_text = f" of {model_name}" if isinstance(model_name, str) else ""
    option_text = "".join(f", {key} = {value!r}" for key, value in sorted(options.items()))
    origin = f"{kernel.name}{model_text}{option_text}{'' if fma else ', nothing fused'}."
    return f"{origin}\n\n{kernel.definition.doc}"


def random_states(
    kernel: Kernel[..., Any], model: Any, count: int, seed: int = 0, inputs: Sequence[str] = ()
) -> list[NDArray[np.float64]]:
    """Random inputs, optional ones last: configurations and parameters by methods of the model, if it has these, and
    standard normal numbers for all others.
    """
    rng = np.random.default_rng(seed)
    configuration = getattr(model, "random_configuration", None)
    names = kernel.optional_inputs(model, inputs)
    cores = {**kernel.signature.optional, **dict(zip(kernel.arguments, kernel.signature.inputs, strict=True))}

    def numbers(name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        if name not in cores:
            return np.tile(model.parameters(), (count, 1))
        if cores[name] == ("nq",) and configuration is not None:
            return np.array([configuration(rng) for _ in range(count)])
        return rng.normal(size=(count, *shape))

    def fields(operand: Operand) -> NDArray[np.float64]:
        parts = [numbers(field_name(operand.name, field), shape) for field, shape in operand.fields]
        return np.concatenate([part.reshape(count, -1) for part in parts], -1)

    operands = kernel.operands(model, names)[0]
    return [fields(o) if o.fields else numbers(o.name, o.shape) for o in operands]
