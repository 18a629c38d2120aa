"""`@kernel`: the bridge between a NumPy function of a model and compiled code.

    @kernel("(nq),(nv),(nv)->(nv)")
    def aba(model, q, v, tau): ...

    aba(model, q, v, tau)             compiles on first use, remembers, uses threads for large batches
    aba.specialize(model)             the bare NumPy ufunc, for hot loops
    aba.bind(model, q, v, tau, a)     the arrays fixed once: a callable without arguments
    aba.python(model, q, v, tau)      the plain function, for one state: slow, and open to the debugger
    aba.inspect(model)                what it compiles to

All of these but `python` take `dtype=np.float32`, which computes in single precision, on twice the states at a time.

The model may be any object that is hashable by content, such as a frozen dataclass, a tuple, a string or None.
Keyword-only parameters of the function are options: they are part of what is compiled and must be hashable too.
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

They come after the other inputs, in the order in which the decorator lists them. A model with parameters (see
`Parametric`) adds an input of its own after all of them: `aba(model, q, v, tau, parameters=p)`. Inside another kernel a
call is inlined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from delassus.compiler import bind, threads
from delassus.compiler.build import Compiled, Recipe, build
from delassus.compiler.digest import check_content_hash, exact, is_frozen
from delassus.compiler.native import compiling
from delassus.compiler.parameters import PARAMETERS, Parametric
from delassus.compiler.precision import Precision
from delassus.compiler.program import Operand, Program
from delassus.compiler.record import checked_results, inline, record
from delassus.compiler.report import Report, make_report
from delassus.compiler.signature import Signature, SignatureError, parameters_of
from delassus.compiler.target import Target
from delassus.compiler.trace import current

_RECENT = 256  # models found again by identity, which spares hashing their content at every call


def kernel(
    signature: str, inputs: Mapping[str, str] | None = None, shared: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function of a model and arrays; see the module's docstring.

    `inputs` and `shared` give the core shapes of those keyword-only parameters that are arrays at run time.
    """
    parsed = Signature.parse(signature).with_optional(inputs or {}).with_optional(shared or {}, shared=True)
    return lambda function: Kernel(function, parsed)


class Kernel:
    """A function of a model and arrays that compiles for each model it meets."""

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        update_wrapper(self, function)
        self.name = function.__name__
        self.function = function
        self.signature = signature
        self.arguments, self.options = parameters_of(function, signature)
        defaults = inspect.signature(function).parameters
        self.required = tuple(n for n in signature.optional if defaults[n].default is inspect.Parameter.empty)
        self._built: dict[Any, Compiled] = {}
        self._recent: dict[Any, tuple[Any, Compiled]] = {}

    def __call__(
        self, model: Any, *arrays: Any, out: Any = None, dtype: DTypeLike | None = None, **options: Any
    ) -> Any:
        """The outputs for one state or a batch: leading axes of the arrays broadcast, as in any NumPy function.

        With `dtype=np.float32` inputs are converted to it, and the outputs are float32.
        """
        if current() is not None:
            for name, value in (("out", out), ("dtype", dtype)):
                if value is not None:
                    raise TypeError(f"{self.name} is being inlined into another kernel, where {name}= has no meaning.")
            return self._inline(model, arrays, options)
        self._check_count(arrays)
        if options or self.required or isinstance(model, Parametric):
            given, options = self._split(model, options)
        else:
            given = {}
        names = tuple(given)
        known = None if options else self._recently(model, _brief(names, dtype))
        arrays = (*arrays, *given.values())
        if dtype is not None:
            arrays = tuple(_as_dtype(x, Precision.of(dtype).dtype) for x in arrays)
        if known is not None:
            return threads.run(known, arrays, out)
        if not all(operand.size for side in self.operands(model, names) for operand in side):
            return self._call_without_empty(model, arrays, names, options, out, _chosen(None, dtype))
        return threads.run(self.compiled(model, dtype=dtype, inputs=names, **options), arrays, out)

    def __reduce__(self) -> str:
        return self.function.__qualname__  # another process gets the name

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(('model', *self.arguments))})>"

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

    def python(self, model: Any, *arrays: Any, **options: Any) -> Any:
        """The plain function on the numbers of one state."""
        self._check_count(arrays)
        given, options = self._split(model, options)
        inputs, outputs = self.operands(model, tuple(given))
        states = [np.asarray(x, float) for x in (*arrays, *given.values())]
        for state, operand in zip(states, inputs, strict=True):
            if state.shape != operand.shape:
                raise ValueError(
                    f"{self.name}.python takes one state: {operand.name} has shape {state.shape}, not {operand.shape}."
                )
        function = self._function(model, tuple(given), self._complete(options))
        results = checked_results(self.name, function(*states), outputs, None)
        return results[0] if len(results) == 1 else tuple(results)

    def program(self, model: Any, *, inputs: Sequence[str] = (), **options: Any) -> Program:
        """The expression graph for this model."""
        names = self._ordered(model, inputs)
        ins, outputs = self.operands(model, names)
        complete = self._complete(options)
        call = (self, model, names, tuple(sorted(complete.items())))
        function = partial(inline, self.name, call, self._function(model, names, complete))
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
            trace = partial(self.program, model, inputs=inputs, **options)
            return make_report(self.name, trace, _chosen(target, dtype))

    def operands(self, model: Any, inputs: tuple[str, ...] = ()) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """Inputs, the given optional ones among them, and outputs with the sizes of this model."""
        names = tuple(name for name in inputs if name != PARAMETERS)
        try:
            ins, outs = self.signature.resolve(model, self.arguments, names)
        except SignatureError as error:
            raise SignatureError(f"{self.name}: {error}{self._wanted()}") from None
        return (ins if names == inputs else (*ins, Operand(PARAMETERS, (model.np,)))), outs

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
        complete, names = self._complete(options), self._ordered(model, inputs)
        for name, value in complete.items():
            check_content_hash(self.name, f"the option {name}", value)
        chosen = _brief(names, dtype)
        if options or target:
            chosen = exact(tuple(sorted(complete.items()))), target, chosen
        recent = self._recently(model, chosen)
        if recent is not None:
            return recent
        found = self._find(model, _chosen(target, dtype), names, complete)
        if is_frozen(model):
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            self._recent[(id(model), chosen) if chosen else id(model)] = (model, found)
        return found

    def _recently(self, model: Any, chosen: Any = None) -> Compiled | None:
        recent = self._recent.get((id(model), chosen) if chosen else id(model))
        return recent[1] if recent is not None and recent[0] is model else None

    def _find(self, model: Any, target: Target, inputs: tuple[str, ...], options: dict[str, Any]) -> Compiled:
        check_content_hash(self.name, "the model", model)
        key = (exact(model), inputs, exact(tuple(sorted(options.items()))), target)
        found = self._built.get(key)
        if found is None:
            with compiling:
                found = self._built.get(key)
                if found is None:
                    found = self._built[key] = build(self._recipe(model, target, inputs, options))
        return found

    def _recipe(self, model: Any, target: Target, names: tuple[str, ...], options: dict[str, Any]) -> Recipe:
        inputs, outputs = self.operands(model, names)
        # A function inside another one may depend on what surrounds it: only the package's own plain functions count.
        module, package = self.function.__module__ or "", __name__.partition(".")[0]
        own = module.partition(".")[0] == package and self.function.__qualname__ == self.name
        return Recipe(
            name=self.name,
            doc=inspect.getdoc(self.function) or "",
            inputs=inputs,
            outputs=outputs,
            trace=partial(self.program, model, inputs=names, **options),
            identity=(module, model, names, tuple(sorted(options.items()))) if own else None,
            target=target,
        )

    def _inline(self, model: Any, arrays: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self._check_count(arrays)
        given, options = self._split(model, options)
        complete, names = self._complete(options), tuple(given)
        inputs, outputs = self.operands(model, names)
        call = (self, model, names, tuple(sorted(complete.items())))
        function = self._function(model, names, complete)
        return inline(self.name, call, function, (*arrays, *given.values()), inputs, outputs)

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
        if out is not None:
            raise TypeError(f"{self.name} has outputs without elements for this model: out= is not possible there.")
        inputs, outputs = self.operands(model, names)
        shapes = [np.shape(x) for x in arrays]
        for shape, operand in zip(shapes, inputs, strict=True):
            if shape[len(shape) - len(operand.shape) :] != operand.shape:
                raise ValueError(f"{self.name}: {operand.name} has shape {shape}, its core must be {operand.shape}.")
        batch = np.broadcast_shapes(*[s[: len(s) - len(o.shape)] for s, o in zip(shapes, inputs, strict=True)])
        some_in, some_out = (tuple(o for o in side if o.size) for side in (inputs, outputs))
        complete = self._complete(options)
        function = self._function(model, names, complete)

        def shortened(*given: Any) -> Any:
            left = iter(given)
            results = function(*[next(left) if o.size else np.zeros(o.shape) for o in inputs])
            returned = results if isinstance(results, tuple) else (results,)
            return tuple(r for r, o in zip(returned, outputs, strict=True) if o.size)

        key = (exact(model), names, exact(tuple(sorted(complete.items()))), target, "without empty")
        found: Iterator[Any] = iter(())
        if some_out:
            with compiling:
                if key not in self._built:
                    trace = partial(record, self.name, shortened, some_in, some_out)
                    doc = inspect.getdoc(self.function) or ""
                    self._built[key] = build(Recipe(self.name, doc, some_in, some_out, trace, None, target))
            some = tuple(x for x, o in zip(arrays, inputs, strict=True) if o.size)
            results = threads.run(self._built[key], some, None)
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

    def _split(self, model: Any, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Optional inputs that are given, in the kernel's order, then the model's parameters; and options."""
        given = {name: options[name] for name in self.signature.optional if options.get(name) is not None}
        options = {name: value for name, value in options.items() if name not in self.signature.optional}
        missing = [name for name in self.required if name not in given]
        if missing:
            shape = "".join(f"{size}," for size in self.signature.optional[missing[0]])
            raise TypeError(f"{self.name} needs the shared array {missing[0]}= of shape ({shape.rstrip(',')}).")
        parameters = options.pop(PARAMETERS, None)
        if isinstance(model, Parametric):
            if parameters is None:
                raise TypeError(
                    f"{self.name}: this model has {model.np} parameters: give an array (…, {model.np}) as "
                    f"{PARAMETERS}=."
                )
            given[PARAMETERS] = parameters
        elif parameters is not None:
            raise TypeError(f"{self.name} got {PARAMETERS}=, and this model ({type(model).__name__}) has none.")
        return given, options

    def _ordered(self, model: Any, inputs: Sequence[str]) -> tuple[str, ...]:
        """Names of optional inputs, checked, in the kernel's order; the parameters of a model that has some last."""
        last = (PARAMETERS,) if isinstance(model, Parametric) else ()
        if not inputs and not self.required:
            return last
        names = [name for name in ([inputs] if isinstance(inputs, str) else inputs) if name not in last]
        names += [name for name in self.required if name not in names]
        unknown = [name for name in names if name not in self.signature.optional]
        if unknown or len(set(names)) < len(names):
            known = ", ".join(self.signature.optional) or "none"
            raise TypeError(f"{self.name} cannot take the optional inputs {tuple(names)}: each of these once: {known}.")
        return (*(name for name in self.signature.optional if name in names), *last)

    def _complete(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options with their defaults."""
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            known = ", ".join(self.options) or "none"
            raise TypeError(f"{self.name} has no option {unknown[0]!r}; its options are: {known}.")
        complete = {**self.options, **options}
        for name, value in options.items():
            if isinstance(self.options[name], bool) and not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"{self.name}: the option {name} is True or False, not {value!r}.")
        missing = [name for name, value in complete.items() if value is inspect.Parameter.empty]
        if missing:
            raise TypeError(f"{self.name} needs a value for the option {missing[0]!r}.")
        return complete

    def _wanted(self) -> str:
        """What the function says that its model is."""
        first = next(iter(inspect.signature(self.function).parameters.values()))
        kind = getattr(first.annotation, "__name__", first.annotation)
        return "" if first.annotation in (Any, "Any", inspect.Parameter.empty) else f" Its first argument is a {kind}."

    def _check_count(self, arrays: tuple[Any, ...]) -> None:
        if len(arrays) != len(self.arguments):
            raise TypeError(
                f"{self.name} takes {len(self.arguments)} arrays ({', '.join(self.arguments)}), got {len(arrays)}."
            )


def _chosen(target: Target | None, dtype: DTypeLike | None) -> Target:
    """A target for a dtype: without them, that of the target, and the host."""
    target = target or Target.host()
    return target if dtype is None else target.with_dtype(dtype)


def _brief(inputs: tuple[str, ...], dtype: DTypeLike | None) -> Any:
    """A key for optional inputs and a dtype; None if none is given."""
    return (inputs, None if dtype is None else Precision.of(dtype).name) if inputs or dtype is not None else None


def _as_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """An array of another dtype; complex numbers and the like are refused, as a ufunc refuses them."""
    array = np.asanyarray(x)
    return array if array.dtype == dtype else array.astype(dtype, casting="same_kind")
