"""`@kernel`: compiles a NumPy function of a model and arrays when it is called.

    @kernel("(nq),(nv),(nv)->(nv)")
    def aba(model, q, v, tau): ...

    aba(model, q, v, tau)             compiles on first use; uses threads for large batches
    aba(model, q=q, v=v, tau=tau)     arrays by name
    aba.specialize(model)             the NumPy ufunc, for loops with small arrays
    aba.bind(model, q, v, tau, a)     a callable without arguments for fixed arrays
    aba.warm_up(model)                compiles before the first call
    aba.python(model, q, v, tau)      the plain function, for one state: slow, for debuggers
    aba.inspect(model)                operations, machine code and compile times

All of these except `python` accept `dtype=np.float32`, which computes in single precision, on twice as many states at a
time.

The model may be any object that is hashable by content, such as a frozen dataclass, a tuple, a string or None.
Keyword-only parameters of the function are options. Their values are compiled in, and must be hashable, too (a NumPy
array becomes a tuple). The decorator declares optional arrays as `inputs`, which are passed at run time:

    @kernel("(nq),(nv),(nv)->(nv)", inputs={"load": "(nv)"})
    def aba(model, q, v, tau, *, load=0.0): ...

    aba(model, q, v, tau, load=load)                  other values do not compile again; without `load`, 0.0 is constant
    aba.specialize(model, inputs=("load",))(q, v, tau, load)
    aba.specialize(model, load=0.5)(q, v, tau)        this value is compiled in
    aba.bind(model, q, v, tau, load, a, inputs=("load",))

A `NamedTuple` or a frozen dataclass of such arrays is one parameter (see `delassus.compiler.Group`). Its fields have
names such as `contact.friction`. The fields of a call are packed into one operand, in the order of the class:

    @kernel("(nq),(nv),(nv)->(nv)", inputs={"contact": ContactParameters})
    def step(model, q, v, tau, *, contact): ...

    step(model, q, v, tau, contact=ContactParameters(friction=0.7))
    step.specialize(model, inputs=("contact.friction", "contact.restitution"))(q, v, tau, packed)

Several inputs may be one parameter of the function and remain separate inputs (see `delassus.compiler.Bundle`):

    @kernel("(nq),(nv),(nv)->(nv)", inputs={"rows": Bundle(RowInputs, mask="(m)", force="(m)")})
    def solve(model, q, v, tau, *, rows=RowInputs()): ...

    solve(model, q, v, tau, mask=mask)                equivalent to rows=RowInputs(mask=mask)

With `result=Motion`, a named tuple with a field for each output, calls return such a tuple. `outputs=` requests a
subset of the outputs, and the others are not computed:

    step(model, q, v, tau, outputs=("q", "status"))
    step.specialize(model, outputs=("q", "status"))(q, v, tau)

Arrays that the decorator declares as `shared` are the same for all states of a batch, such as the weights of a policy,
and are not copied. Those without a default are required:

    @kernel("(n)->(m)", shared={"weights": "(m,n)"})
    def policy(model, x, *, weights): ...

    policy(model, x, weights=weights)
    policy.specialize(model)(x, weights)
    policy.bind(model, x, weights, y)

A single number is used for all elements of such an array. Optional inputs come after the positional arrays, in the
order of their declaration, shared ones last. A model with parameters (see `Parametric`) adds an input after all others:
`aba(model, q, v, tau, parameters=p)`. Inside another kernel a call is inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delassus.compiler.graph.digest import is_frozen
from delassus.compiler.graph.parameters import PARAMETERS
from delassus.compiler.graph.precision import Precision
from delassus.compiler.host import empty_arrays, threads
from delassus.compiler.host.arguments import NOT_GIVEN
from delassus.compiler.host.build import Compiled
from delassus.compiler.host.compilable import Compilable, target_of
from delassus.compiler.host.definition import Case, Definition, Result, is_plain
from delassus.compiler.host.inputs import Declared
from delassus.compiler.host.known_calls import CallPlan, form_of, keyword_inputs
from delassus.compiler.host.signature import Signature
from delassus.compiler.tracing.trace import current
from delassus.errors import BadArgument

P = ParamSpec("P")
R = TypeVar("R")
OUTPUTS: Final = "outputs"
"""The argument of a call with the names of requested outputs; not a parameter, as this would slow down each call."""
Floats: TypeAlias = NDArray[np.float64]
"""The results of kernels: arrays, of one state or a batch."""


def kernel(
    signature: str,
    inputs: Mapping[str, Declared] | None = None,
    shared: Mapping[str, str] | None = None,
    *,
    result: Result | None = None,
    single: str = "",
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Make a kernel of a function of a model and arrays; see the module's docstring.

    `inputs` and `shared` declare the keyword-only parameters that are arrays at run time, by core shapes or `Input`
    objects. A structure is declared by its class or a `Group`. `result` is a named tuple with a field for each output.
    `single` is a warning for compilation in float32, for functions that need double precision.

    >>> @dl.kernel("(3)->()")
    ... def total(model, x):
    ...     return dl.numpy.sum(x)
    >>> float(total(None, np.ones(3)))
    3.0
    """
    parsed = Signature.parse(signature).with_optional(inputs or {}).with_optional(shared or {}, shared=True)
    return lambda function: Kernel(function, parsed, single, result)


class Kernel(Compilable, Generic[P, R]):
    """A function of a model and arrays that is compiled for each model.

    For type checkers, a call has the signature of the function, with arrays for traced values.
    """

    def __init__(
        self, function: Callable[P, R], signature: Signature, single: str = "", result: Result | None = None
    ) -> None:
        super().__init__(Definition(function, signature, single, result))
        update_wrapper(self, function)
        self.function: Callable[..., Any] = function
        self.signature = signature
        self.arguments, self.options = self._arguments.arrays, self._arguments.options
        self._count, self._plain_result = len(self.arguments), result is None
        self._recent = self._versions.recent
        self._by_name = frozenset((*self.arguments, *signature.optional, PARAMETERS))
        self._groups, self._bundles = signature.groups, frozenset(signature.bundles)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(self, model: Any, /, *arrays: Any, outputs: Sequence[str], **options: Any) -> Any: ...

    @overload
    def __call__(
        self, model: Any, /, *arrays: Any, out: Any = None, dtype: DTypeLike | None = None, **options: Any
    ) -> R: ...

    def __call__(  # type: ignore[misc]  # options of a kernel cannot have the names of these parameters
        self,
        model: Any = NOT_GIVEN,
        /,
        *arrays: Any,
        out: Any = None,
        dtype: DTypeLike | None = None,
        **options: Any,
    ) -> Any:
        """The outputs for one state or a batch: leading axes of the arrays broadcast, as in any NumPy function.

        Arrays may be passed by their names in the function. `outputs` are the names of requested outputs. With
        `dtype=np.float32`, inputs are converted to float32, and the outputs are float32.
        """
        if current() is not None or is_plain():
            return self._part(model, arrays, out, dtype, options)
        if not options and dtype is None and len(arrays) == self._count:
            plan, form = self._recent.get(id(model)), None
        else:
            form = form_of(model, len(arrays), dtype, options, self._by_name, self._groups)
            plan = None if form is None else self._recent.get(form[0])
        if plan is None or plan.model is not model:
            return self._call(model, arrays, out, dtype, options, None if form is None else form[0])
        if form is not None:
            if form[1]:
                arrays = (*arrays, *keyword_inputs(plan, form[1]))
            if dtype is not None:
                arrays = tuple(_as_dtype(x, plan.compiled.dtype) for x in arrays)
        results = threads.run(plan.compiled, arrays, out)
        return (
            results if self._plain_result else self._name_results(plan.compiled, results, model, arrays, plan.outputs)
        )

    def _call(
        self,
        model: Any,
        positional: tuple[Any, ...],
        out: Any,
        dtype: DTypeLike | None,
        keywords: dict[str, Any],
        form: Any,
    ) -> Any:
        """The first call of a form: reads its arguments, and stores a plan for later calls of this form."""
        if not self._bundles.isdisjoint(keywords):  # there may be a plan for a call with their fields as keywords
            return self(model, *positional, out=out, dtype=dtype, **self._arguments.unbundle(keywords))
        model, case, arrays, options = self._read_call(model, positional, keywords)
        if dtype is not None:
            arrays = tuple(_as_dtype(x, Precision.of(dtype).dtype) for x in arrays)
        if empty_arrays.has_empty(case):
            if out is not None:
                raise TypeError(f"{self.name} has outputs without elements for this model: omit out=.")
            target = target_of(None, dtype)
            find = partial(self._find, model, case, (target, "without empty"))
            outputs = empty_arrays.run(case, arrays, target, find)
            return self.definition.name_results(outputs, model, case.operands[0], arrays, case.outputs)
        compiled = self.compiled(model, dtype=dtype, inputs=case.inputs, outputs=case.outputs, **options)
        if self._arguments.model not in keywords and is_frozen(model):
            names = [name for name, value in keywords.items() if self._adds_array(name, value)]
            named = tuple(
                (names.index(operand.name.partition(".")[0]), operand.shape, self._arguments.reader(model, operand))
                for operand in case.operands[0][len(positional) :]
            )
            plain = not keywords and dtype is None
            if plain or form is not None:
                plan = CallPlan(model, compiled, named, keywords, case.outputs)
                self._versions.remember(id(model) if plain else form, plan)
        results = threads.run(compiled, arrays, out)
        return results if self._plain_result else self._name_results(compiled, results, model, arrays, case.outputs)

    def _adds_array(self, name: str, value: Any) -> bool:
        """Whether a keyword argument adds an array to a call."""
        group = self._groups.get(name)
        return value is not None and (name in self._by_name if group is None else bool(group.nondefault_fields(value)))

    def __reduce__(self) -> str:
        return self.function.__qualname__  # pickled by name

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join((self._arguments.model, *self.arguments))})>"

    def _read_call(
        self, model: Any, positional: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Any, Case, tuple[Any, ...], dict[str, Any]]:
        """The model of a call, its case, its arrays in the order of the operands, and its options."""
        model, arrays, remaining = self._arguments.arrange(model, positional, keywords)
        outputs = remaining.pop(OUTPUTS, None)
        inputs, options = self._arguments.split(model, remaining)
        case = self.definition.case(model, tuple(inputs), options, outputs)
        return model, case, (*arrays, *case.packed(inputs)), options

    def _part(self, model: Any, arrays: tuple[Any, ...], out: Any, dtype: Any, options: dict[str, Any]) -> Any:
        """A call inside another kernel: it is inlined, or runs as a plain function if the other kernel does."""
        for name, value in (("out", out), ("dtype", dtype)):
            if value is not None:
                raise TypeError(f"{self.name} is being inlined into another kernel, where {name}= has no meaning.")
        model, case, arrays, _ = self._read_call(model, arrays, options)
        results = case.on_numbers(arrays) if current() is None else case.inlined(arrays)
        return self.definition.name_results(tuple(results), model, case.operands[0], arrays, case.outputs)

    def _name_results(
        self, compiled: Compiled, results: Any, model: Any, arrays: tuple[Any, ...], outputs: tuple[str, ...]
    ) -> Any:
        values = results if len(compiled.outputs) > 1 else (results,)
        return self.definition.name_results(values, model, compiled.inputs, arrays, outputs)

    def python(self, model: Any = NOT_GIVEN, /, *arrays: Any, **options: Any) -> Any:
        """The results of the plain function for one state, as numbers, also during a trace."""
        model, case, arrays, _ = self._read_call(model, arrays, options)
        results = tuple(case.on_numbers(arrays))
        return self.definition.name_results(results, model, case.operands[0], arrays, case.outputs)


def _as_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """Convert an array to a dtype; complex numbers and other types that a ufunc rejects raise an error."""
    array = np.asanyarray(x)
    return array if array.dtype == dtype else array.astype(dtype, casting="same_kind")


def kernel_behind(function: Any) -> Kernel[..., Any] | None:
    """The first kernel that the code of a plain function refers to; None if there is none."""
    if not isinstance(function, FunctionType):
        return None
    globals_used = (function.__globals__.get(name) for name in function.__code__.co_names)
    return next((x for x in globals_used if isinstance(x, Kernel)), None)


def check_kernel(x: Any) -> None:
    """Raise an error if x is not a kernel; for a function that calls a kernel, the message names that kernel."""
    if isinstance(x, Kernel):
        return
    kernel = kernel_behind(x)
    if kernel is None:
        name = getattr(x, "__name__", repr(x))
        raise BadArgument(
            f"{name} is not a kernel; pass one such as dl.aba, or a function decorated with @dl.kernel.",
            code="not-a-kernel",
        )
    raise BadArgument(
        f"{x.__name__} is a function that calls a kernel; only kernels can be exported, so use "
        f"{kernel.definition.function.__module__}.{kernel.name}.",
        code="not-a-kernel",
    )
