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
    """A definition, with methods that compile it for a model.

    These methods have the arguments `inputs`, names of optional inputs of the compiled kernel, `outputs`, names of
    requested outputs (all by default), and options. A value of an optional input is compiled in as a constant.
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

        The optional `inputs` come after the others, in the kernel's order; the parameters of a parametric model come
        last. A value of an optional input is compiled in as a constant.
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
        """A callable without arguments that computes the outputs from the inputs in place, in one thread."""
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
        """Consecutive calls for single states, each on the next rows of the arrays; see `CallSequence`."""
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
        """Compile for this model without a call: code for batches (True), for single states (False), or both (None)."""
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
        """Operations, slots, machine code and compile times of this kernel, which is compiled again to measure it."""
        with compiling:
            machine, case = target_of(target, dtype), self.definition.case(model, inputs, options, outputs)
            return make_report(self.name, lambda: case.program(machine.precision), machine)

    def operands(self, model: Any, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()) -> Operands:
        """Inputs, including the optional `inputs`, and outputs, all or the requested ones, with this model's sizes."""
        return self.definition.operands(self._arguments.meant(model), inputs, outputs)

    def pack(self, model: Any, **keywords: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """The names of optional inputs among keyword arguments, including fields of structures, and their arrays for
        `specialize` and `bind`: `names, arrays = kernel.pack(model, contact=…)`, then
        `kernel.bind(model, q, *arrays, out, inputs=names)`.
        """
        inputs, options = self._arguments.split(model, keywords)
        case = self.definition.case(model, tuple(inputs), options)
        return case.inputs, case.packed(inputs)

    def optional_inputs(self, model: Any, names: Sequence[str]) -> tuple[str, ...]:
        """Names of optional inputs, checked, in the kernel's order; a model's parameters come last."""
        return self._arguments.ordered(self._arguments.meant(model), names)

    @property
    def takes(self) -> Any:
        """The class of models for the function, by the annotation of its first parameter, or None."""
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
        """The compiled kernel, which is built on first use; the default is float64 on the host."""
        machine, case = target_of(target, dtype), self.definition.case(model, inputs, options, outputs)

        def make() -> Compiled:
            if self.definition.single and machine.precision is SINGLE:
                warn(f"{self.name} in float32: {self.definition.single}")
            # With an explicit target, there is no quickly compiled code before that of the target's level.
            return build(case.recipe(machine, quick_first=target is None), self._versions.of_program)

        return self._find(model, case, (machine, target is None), make)

    def _find(self, model: Any, case: Case, form: tuple[Any, ...], make: Callable[[], Compiled]) -> Compiled:
        """The compiled kernel of a case, by the identity of its model or its content; built by `make` on first use."""
        key = (id(model), case.settings, form)
        recent = self._versions.recent.get(key)
        if recent is not None and recent.model is model:
            return recent.compiled
        version = self._versions.find((case.key, form), make)
        if is_frozen(model):
            self._versions.remember(key, CallPlan(model, version))
        return version


def target_of(target: Target | None, dtype: DTypeLike | None) -> Target:
    """A target for a dtype; by default, the host and the dtype of the target."""
    target = target or Target.host()
    return target if dtype is None else target.with_dtype(dtype)
