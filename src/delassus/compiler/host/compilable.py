"""Kernels compiled for a model without a call: ufuncs, bound arrays, programs, reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from delassus.compiler.backends.llvm.report import Report, make_report
from delassus.compiler.backends.native import compiling
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.digest import is_frozen
from delassus.compiler.graph.precision import SINGLE, Precision
from delassus.compiler.graph.program import Program
from delassus.compiler.host.bound import bind
from delassus.compiler.host.bound.sequence import CallSequence
from delassus.compiler.host.build import Compiled, build
from delassus.compiler.host.definition import Case, Definition, Operands
from delassus.compiler.host.known_calls import CallPlan
from delassus.compiler.host.versions import Versions
from delassus.errors import warn


class Compilable:
    """A definition, and what was compiled of it.

    All that is made for a model takes the names of the optional `inputs` that it is to have, those of the `outputs`
    that are wanted (all by default), and options; what is given for an optional input by value is compiled in.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.name = definition.name
        self._arguments = definition.arguments
        self._versions = Versions()

    def specialize(
        self,
        model: Any,
        dtype: DTypeLike | None = None,
        *,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> np.ufunc:
        """The NumPy ufunc for this model: the least overhead of a call with arguments; one thread.

        `inputs` names the optional inputs that it takes, after the others, in the kernel's own order; what is given
        by value is compiled in. The parameters of a model that has some come last.
        """
        return self.compiled(model, dtype=dtype, inputs=inputs, outputs=outputs, **options).ufunc

    def bind(
        self,
        model: Any,
        *arrays: np.ndarray[Any, Any],
        dtype: DTypeLike | None = None,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> Callable[[], None]:
        """Fix inputs and outputs once: the result recomputes in place each time it is called, in one thread."""
        return bind.bind(self.compiled(model, dtype=dtype, inputs=inputs, outputs=outputs, **options), arrays)

    def sequence(
        self,
        model: Any,
        *arrays: np.ndarray[Any, Any],
        stop: int,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> CallSequence:
        """Calls for single states in a row, each on the next rows of the arrays; see `CallSequence`."""
        return CallSequence(self.compiled(model, inputs=inputs, outputs=outputs, **options), arrays, stop)

    def warm_up(
        self,
        model: Any,
        dtype: DTypeLike | None = None,
        *,
        batch: bool | None = None,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Compile for this model without calling: the code for batches, the one for single states, or both (None)."""
        widths = self.compiled(model, dtype=dtype, inputs=inputs, outputs=outputs, **options).widths
        for many in (False, True) if batch is None else (batch,):
            widths.need(many)

    def program(
        self,
        model: Any,
        dtype: DTypeLike | None = None,
        *,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> Program:
        """The expression graph for this model; a few functions choose their defaults by the precision."""
        return self.definition.case(model, inputs, options, outputs).program(Precision.of(dtype))

    def inspect(
        self,
        model: Any,
        target: Target | None = None,
        dtype: DTypeLike | None = None,
        *,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> Report:
        """Operations, slots, machine code and compile times of this kernel, compiled anew to measure it."""
        with compiling:
            machine, case = target_of(target, dtype), self.definition.case(model, inputs, options, outputs)
            return make_report(self.name, lambda: case.program(machine.precision), machine)

    def operands(self, model: Any, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()) -> Operands:
        """Inputs, the given optional ones among them, and outputs, all or the chosen ones, with this model's sizes."""
        return self.definition.operands(self._arguments.meant(model), inputs, outputs)

    def pack(self, model: Any, **given: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """The names of the optional inputs that are given by value, fields of structures among them, and the arrays
        that `specialize` and `bind` take for them: `names, arrays = kernel.pack(model, contact=…)`, then
        `kernel.bind(model, q, *arrays, out, inputs=names)`.
        """
        inputs, options = self._arguments.split(model, given)
        case = self.definition.case(model, tuple(inputs), options)
        return case.inputs, case.packed(inputs)

    def optional_inputs(self, model: Any, names: Sequence[str]) -> tuple[str, ...]:
        """Names of optional inputs, checked, in the kernel's own order; a model's parameters come last."""
        return self._arguments.ordered(self._arguments.meant(model), names)

    @property
    def takes(self) -> Any:
        """The kind of model that the function asks for, by the annotation of its first parameter, or None."""
        return self._arguments.kind

    def compiled(
        self,
        model: Any,
        target: Target | None = None,
        dtype: DTypeLike | None = None,
        *,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> Compiled:
        """The compiled kernel, built on first use and remembered; for float64 on the host unless others are given."""
        machine, case = target_of(target, dtype), self.definition.case(model, inputs, options, outputs)

        def make() -> Compiled:
            if self.definition.single and machine.precision is SINGLE:
                warn(f"{self.name} in float32: {self.definition.single}")
            # Whoever names a target gets code of its level, and nothing else before.
            return build(case.recipe(machine, quick_first=target is None), self._versions.of_program)

        return self._find(model, case, (machine, target is None), make)

    def _find(self, model: Any, case: Case, form: tuple[Any, ...], make: Callable[[], Compiled]) -> Compiled:
        """What is compiled for a case in some form, made on first use: by the identity of its model, or its content."""
        key = (id(model), case.settings, form)
        recent = self._versions.recent.get(key)
        if recent is not None and recent.model is model:
            return recent.compiled
        version = self._versions.find((case.key, form), make)
        if is_frozen(model):
            self._versions.remember(key, CallPlan(model, version))
        return version


def target_of(target: Target | None, dtype: DTypeLike | None) -> Target:
    """A target for a dtype: without them, that of the target, and the host."""
    target = target or Target.host()
    return target if dtype is None else target.with_dtype(dtype)
