"""`@kernel`: the bridge between a NumPy function of a model and compiled code.

    @kernel("(nq),(nv),(nv)->(nv)")
    def aba(model, q, v, tau): ...

    aba(model, q, v, tau)             compiles on first use, remembers, uses threads for large batches
    aba(model, q=q, v=v, tau=tau)     the same
    aba.specialize(model)             the bare NumPy ufunc, for hot loops
    aba.bind(model, q, v, tau, a)     the arrays fixed once: a callable without arguments
    aba.warm_up(model)                compiles now what the first calls would wait for
    aba.python(model, q, v, tau)      the plain function, for one state: slow, and open to the debugger
    aba.inspect(model)                what it compiles to

All of these but `python` take `dtype=np.float32`, which computes in single precision, on twice the states at a time.

The model may be any object that is hashable by content, such as a frozen dataclass, a tuple, a string or None.
Keyword-only parameters of the function are options: they are part of what is compiled and must be hashable too (a
NumPy array becomes a tuple).
Those that the decorator lists as `inputs` are arrays that may be given or not, at run time:

    @kernel("(nq),(nv),(nv)->(nv)", inputs={"load": "(nv)"})
    def aba(model, q, v, tau, *, load=None): ...

    aba(model, q, v, tau, load=load)
    aba.specialize(model, inputs=("load",))(q, v, tau, load)
    aba.bind(model, q, v, tau, load, a, inputs=("load",))

Those that it lists as `shared` are the same for all states of a batch, such as the weights of a policy, and are read
where they lie; one without a default has to be given:

    @kernel("(n)->(m)", shared={"weights": "(m,n)"})
    def policy(model, x, *, weights): ...

    policy(model, x, weights=weights)
    policy.specialize(model)(x, weights)
    policy.bind(model, x, weights, y)

One plain number stands for all elements of such an array. They come after the other inputs, in the order in which the
decorator lists them. A model with parameters (see `Parametric`) adds an input of its own after all of them:
`aba(model, q, v, tau, parameters=p)`. Inside another kernel a call is inlined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delassus.compiler.backends.native import compiling
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.digest import check_content_hash, exact, is_frozen
from delassus.compiler.graph.parameters import PARAMETERS
from delassus.compiler.graph.precision import SINGLE, Precision
from delassus.compiler.graph.program import Operand, Program
from delassus.compiler.host import bind, threads
from delassus.compiler.host.arguments import NOT_GIVEN, Arguments
from delassus.compiler.host.build import Compiled, Recipe, build
from delassus.compiler.host.known_calls import KnownCall, form_of, spread
from delassus.compiler.host.report import Report, make_report
from delassus.compiler.host.signature import Signature, SignatureError
from delassus.compiler.host.versions import Versions
from delassus.compiler.tracing.array import contains_traced
from delassus.compiler.tracing.record import checked_results, inline, record
from delassus.compiler.tracing.trace import current, tracing_for, untraced
from delassus.errors import warn

P = ParamSpec("P")
R = TypeVar("R")
Floats: TypeAlias = NDArray[np.float64]
"""What kernels give: arrays, one state or a batch."""


def kernel(
    signature: str,
    inputs: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    *,
    single: str = "",
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Make a kernel of a function of a model and arrays; see the module's docstring.

    `inputs` and `shared` give the core shapes of those keyword-only parameters that are arrays at run time. `single` is
    a warning for those who compile it for float32, where that is not enough.
    """
    parsed = Signature.parse(signature).with_optional(inputs or {}).with_optional(shared or {}, shared=True)
    return lambda function: Kernel(function, parsed, single)


class Kernel(Generic[P, R]):
    """A function of a model and arrays that compiles for each model it meets.

    To a type checker, a call takes what the function takes and gives what it gives, arrays for traced values.
    """

    def __init__(self, function: Callable[P, R], signature: Signature, single: str = "") -> None:
        update_wrapper(self, function)
        self.single = single
        self.name = function.__name__
        self.function: Callable[..., Any] = function
        self.signature = signature
        self._arguments = Arguments(function, signature)
        self.arguments, self.options = self._arguments.arrays, self._arguments.options
        self._count = len(self.arguments)
        self._versions = Versions()
        self._recent = self._versions.recent
        # A function inside another one may depend on what surrounds it: only the package's own plain functions count.
        package = (function.__module__ or "").partition(".")[0]
        self._own = package == __name__.partition(".")[0] and function.__qualname__ == self.name
        self._by_name = frozenset((*self.arguments, *signature.optional, PARAMETERS))

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(
        self, model: Any, /, *arrays: Any, out: Any = None, dtype: DTypeLike | None = None, **options: Any
    ) -> Any: ...

    def __call__(  # type: ignore[misc]  # a kernel has no options of the names that its own call takes
        self,
        model: Any = NOT_GIVEN,
        /,
        *arrays: Any,
        out: Any = None,
        dtype: DTypeLike | None = None,
        **options: Any,
    ) -> Any:
        """The outputs for one state or a batch: leading axes of the arrays broadcast, as in any NumPy function.

        Arrays may be given by their names in the function. With `dtype=np.float32` inputs are converted to it, and the
        outputs are float32.
        """
        if current() is not None:
            for name, value in (("out", out), ("dtype", dtype)):
                if value is not None:
                    raise TypeError(f"{self.name} is being inlined into another kernel, where {name}= has no meaning.")
            return self._inline(model, arrays, options)
        if not options and dtype is None and len(arrays) == self._count:
            known = self._recent.get(id(model))
            if known is not None and known.model is model:
                return threads.run(known.compiled, arrays, out)
            form = None
        else:
            form = form_of(model, len(arrays), dtype, options, self._by_name)
            known = None if form is None else self._recent.get(form[0])
            if form is not None and known is not None and known.model is model:
                if form[1]:
                    arrays = (*arrays, *[spread(form[1][k], shape) for k, shape in known.named])
                if dtype is not None:
                    arrays = tuple(_as_dtype(x, known.compiled.dtype) for x in arrays)
                return threads.run(known.compiled, arrays, out)
        return self._call(model, arrays, out, dtype, options, None if form is None else form[0])

    def _call(
        self, model: Any, by_place: tuple[Any, ...], out: Any, dtype: DTypeLike | None, given: dict[str, Any], form: Any
    ) -> Any:
        """A call that is not known yet: its arguments are read, and the next one of this form is known."""
        model, arrays, options = self._arguments.arranged(model, by_place, given)
        inputs, options = self._arguments.split(model, options)
        ins, outs = self.operands(model, tuple(inputs))
        arrays = (*arrays, *map(spread, inputs.values(), (operand.shape for operand in ins[self._count :])))
        if dtype is not None:
            arrays = tuple(_as_dtype(x, Precision.of(dtype).dtype) for x in arrays)
        if not all(operand.size for operand in (*ins, *outs)):
            return self._call_without_empty(model, arrays, tuple(inputs), options, out, _chosen(None, dtype))
        compiled = self.compiled(model, dtype=dtype, inputs=tuple(inputs), **options)
        if form is not None and self._arguments.model not in given and is_frozen(model):
            names = [name for name, value in given.items() if name in self._by_name and value is not None]
            named = tuple((names.index(operand.name), operand.shape) for operand in compiled.inputs[len(by_place) :])
            self._versions.remember(form, KnownCall(model, compiled, named, given))
        return threads.run(compiled, arrays, out)

    def __reduce__(self) -> str:
        return self.function.__qualname__  # another process gets the name

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join((self._arguments.model, *self.arguments))})>"

    def specialize(
        self, model: Any, dtype: DTypeLike | None = None, *, inputs: Sequence[str] = (), **options: Any
    ) -> np.ufunc:
        """The NumPy ufunc for this model: the least overhead of a call with arguments; one thread.

        `inputs` names the optional inputs that it takes, after the others, in the kernel's own order. The parameters
        of a model that has some come last.
        """
        return self.compiled(model, dtype=dtype, inputs=inputs, **options).ufunc

    def bind(
        self,
        model: Any,
        *arrays: np.ndarray[Any, Any],
        dtype: DTypeLike | None = None,
        inputs: Sequence[str] = (),
        **options: Any,
    ) -> Callable[[], None]:
        """Fix inputs and outputs once: the result recomputes in place each time it is called, in one thread."""
        return bind.bind(self.compiled(model, dtype=dtype, inputs=inputs, **options), arrays)

    def warm_up(
        self,
        model: Any,
        dtype: DTypeLike | None = None,
        *,
        batch: bool | None = None,
        inputs: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Compile for this model without calling: the code for batches, the one for single states, or both (None)."""
        widths = self.compiled(model, dtype=dtype, inputs=inputs, **options).widths
        for many in (False, True) if batch is None else (batch,):
            widths.need(many)

    def python(self, model: Any = NOT_GIVEN, /, *arrays: Any, **options: Any) -> Any:
        """The plain function on the numbers of one state; also in the middle of a trace, where it gives numbers."""
        model, arrays, options = self._arguments.arranged(model, arrays, options)
        model = self._arguments.meant(model)
        given, options = self._arguments.split(model, options)
        inputs, outputs = self.operands(model, tuple(given))
        for x, operand in zip((*arrays, *given.values()), inputs, strict=True):
            if contains_traced(x):
                raise TypeError(
                    f"{self.name}.python computes with numbers, and {operand.name} is traced: inside a kernel, call "
                    f"{self.name} itself."
                )
        optional = map(spread, given.values(), (operand.shape for operand in inputs[self._count :]))
        states = [np.asarray(x, float) for x in (*arrays, *optional)]
        for state, operand in zip(states, inputs, strict=True):
            if state.shape != operand.shape:
                raise ValueError(
                    f"{self.name}.python takes one state: {operand.name} has shape {state.shape}, not {operand.shape}."
                )
        function = self._function(model, tuple(given), self._arguments.complete(options))
        with untraced():
            results = checked_results(self.name, function(*states), outputs, None)
        return results[0] if len(results) == 1 else tuple(results)

    def program(
        self, model: Any, dtype: DTypeLike | None = None, *, inputs: Sequence[str] = (), **options: Any
    ) -> Program:
        """The expression graph for this model; a few functions choose their defaults by the precision."""
        model = self._arguments.meant(model)
        names = self._arguments.ordered(model, inputs)
        ins, outputs = self.operands(model, names)
        complete = self._arguments.complete(options)
        call = (self.function, model, names, tuple(sorted(complete.items())))
        function = partial(inline, self.name, call, self._function(model, names, complete))
        with tracing_for(Precision.of(dtype)):
            return record(self.name, lambda *arrays: function(arrays, ins, outputs), ins, outputs)

    def inspect(
        self,
        model: Any,
        target: Target | None = None,
        dtype: DTypeLike | None = None,
        *,
        inputs: Sequence[str] = (),
        **options: Any,
    ) -> Report:
        """Operations, slots, machine code and compile times of this kernel, compiled anew to measure it."""
        with compiling:
            chosen = _chosen(target, dtype)
            trace = partial(self.program, model, chosen.precision.dtype, inputs=inputs, **options)
            return make_report(self.name, trace, chosen)

    def operands(self, model: Any, inputs: tuple[str, ...] = ()) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """Inputs, the given optional ones among them, and outputs with the sizes of this model."""
        model, names = self._arguments.meant(model), tuple(name for name in inputs if name != PARAMETERS)
        try:
            ins, outs = self.signature.resolve(model, self.arguments, names)
        except SignatureError as error:
            raise SignatureError(f"{self.name}: {error}{self._arguments.wanted}") from None
        return (ins if names == inputs else (*ins, Operand(PARAMETERS, (model.np,)))), outs

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
        **options: Any,
    ) -> Compiled:
        """The compiled kernel, built on first use and remembered; for float64 on the host unless others are given."""
        complete, names = self._arguments.complete(options), self._arguments.ordered(model, inputs)
        for name, value in complete.items():
            check_content_hash(self.name, f"the option {name}", value)
        key: Any = id(model)
        if options or target or names or dtype is not None:
            precision = None if dtype is None else Precision.of(dtype).name
            key = (key, exact(tuple(sorted(complete.items()))), target, names, precision)
        known = self._recent.get(key)
        if known is not None and known.model is model:
            return known.compiled
        found = self._find(self._arguments.meant(model), _chosen(target, dtype), names, complete)
        if is_frozen(model):
            self._versions.remember(key, KnownCall(model, found))
        return found

    def _find(self, model: Any, target: Target, inputs: tuple[str, ...], options: dict[str, Any]) -> Compiled:
        check_content_hash(self.name, "the model", model)
        key = (exact(model, unread=not self._own), inputs, exact(tuple(sorted(options.items()))), target)

        def make() -> Compiled:
            if self.single and target.precision is SINGLE:
                warn(f"{self.name} in float32: {self.single}")
            return build(self._recipe(model, target, inputs, options), self._versions.of_program)

        return self._versions.find(key, make)

    def _recipe(self, model: Any, target: Target, names: tuple[str, ...], options: dict[str, Any]) -> Recipe:
        inputs, outputs = self.operands(model, names)
        identity = (self.function.__module__, model, names, tuple(sorted(options.items()))) if self._own else None
        return Recipe(
            name=self.name,
            doc=inspect.getdoc(self.function) or "",
            inputs=inputs,
            outputs=outputs,
            trace=partial(self._without_versions().program, model, target.precision.dtype, inputs=names, **options),
            identity=identity,
            target=target,
        )

    def _without_versions(self) -> Kernel[P, R]:
        """The same kernel, for a version of this one to keep: it is to be freed as soon as nobody holds it."""
        return Kernel(self.function, self.signature, self.single)

    def _inline(self, model: Any, arrays: tuple[Any, ...], options: dict[str, Any]) -> Any:
        model, arrays, options = self._arguments.arranged(model, arrays, options)
        model = self._arguments.meant(model)
        given, options = self._arguments.split(model, options)
        complete, names = self._arguments.complete(options), tuple(given)
        inputs, outputs = self.operands(model, names)
        call = (self.function, model, names, tuple(sorted(complete.items())))
        function = self._function(model, names, complete)
        optional = map(spread, given.values(), (operand.shape for operand in inputs[self._count :]))
        return inline(self.name, call, function, (*arrays, *optional), inputs, outputs)

    def _call_without_empty(
        self,
        model: Any,
        arrays: tuple[Any, ...],
        names: tuple[str, ...],
        options: dict[str, Any],
        out: Any,
        target: Target,
    ) -> Any:
        """A call for a model on which some arrays have no elements: a ufunc of the others, and empty outputs."""
        model = self._arguments.meant(model)
        if out is not None:
            raise TypeError(f"{self.name} has outputs without elements for this model: out= is not possible there.")
        inputs, outputs = self.operands(model, names)
        shapes = [np.shape(x) for x in arrays]
        for shape, operand in zip(shapes, inputs, strict=True):
            if shape[len(shape) - len(operand.shape) :] != operand.shape:
                raise ValueError(f"{self.name}: {operand.name} has shape {shape}, its core must be {operand.shape}.")
        batch = np.broadcast_shapes(*[s[: len(s) - len(o.shape)] for s, o in zip(shapes, inputs, strict=True)])
        some_in, some_out = (tuple(o for o in side if o.size) for side in (inputs, outputs))
        complete = self._arguments.complete(options)
        function = self._function(model, names, complete)

        def shortened(*given: Any) -> Any:
            left = iter(given)
            results = function(*[next(left) if o.size else np.zeros(o.shape) for o in inputs])
            returned = results if isinstance(results, tuple) else (results,)
            return tuple(r for r, o in zip(returned, outputs, strict=True) if o.size)

        key = (
            exact(model, unread=not self._own),
            names,
            exact(tuple(sorted(complete.items()))),
            target,
            "without empty",
        )
        found: Iterator[Any] = iter(())
        trace = partial(record, self.name, shortened, some_in, some_out)
        if not some_out:  # nothing to compile, but what the function refuses is refused all the same
            trace()
        else:
            recipe = Recipe(self.name, inspect.getdoc(self.function) or "", some_in, some_out, trace, None, target)
            some = tuple(x for x, o in zip(arrays, inputs, strict=True) if o.size)
            results = threads.run(self._versions.find(key, lambda: build(recipe)), some, None)
            found = iter(results if len(some_out) > 1 else (results,))
        complete_outputs = tuple(
            np.array(np.broadcast_to(next(found), batch + o.shape))
            if o.size
            else np.zeros(batch + o.shape, target.precision.dtype)
            for o in outputs
        )
        return complete_outputs if len(outputs) > 1 else complete_outputs[0]

    def _function(self, model: Any, inputs: tuple[str, ...], options: dict[str, Any]) -> Callable[..., Any]:
        """The function of arrays alone; optional inputs come last, and then parameters."""
        count = len(self.arguments)

        def function(*arrays: Any) -> Any:
            given = dict(zip(inputs, arrays[count:], strict=True))
            known = model.with_parameters(given.pop(PARAMETERS)) if PARAMETERS in given else model
            return self.function(known, *arrays[:count], **given, **options)

        return function


def _chosen(target: Target | None, dtype: DTypeLike | None) -> Target:
    """A target for a dtype: without them, that of the target, and the host."""
    target = target or Target.host()
    return target if dtype is None else target.with_dtype(dtype)


def _as_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """An array of another dtype; complex numbers and the like are refused, as a ufunc refuses them."""
    array = np.asanyarray(x)
    return array if array.dtype == dtype else array.astype(dtype, casting="same_kind")
