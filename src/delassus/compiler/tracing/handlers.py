"""The table of NumPy functions that can be traced, and their dispatch."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

Handler: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Handler)

HANDLERS: dict[Any, Handler] = {}
"""What each NumPy function does on traced arrays, by the NumPy function."""


def handles(*functions: Any) -> Callable[[F], F]:
    """Register a function as the traced form of some NumPy functions."""

    def register(handler: F) -> F:
        HANDLERS.update(dict.fromkeys(functions, handler))
        return handler

    return register


def unsupported_error(function: Any) -> TypeError:
    """The error for a NumPy function that has no traced form."""
    name = getattr(function, "__name__", str(function))
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy").lstrip(".")
    full = f"np.{module}.{name}" if module and not module.startswith("_") else f"np.{name}"
    return TypeError(
        f"{full} met traced values and has no compiled form. Write it with the operations that have one "
        "(arithmetic, sqrt, sin, cos, where, minimum, @, einsum, sum, stack, linalg.cholesky, linalg.solve, …; "
        "the list is in delassus.numpy's documentation), or call it outside the kernel and pass the result in."
    )


def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the traced form of a NumPy function, or say that there is none."""
    handler = HANDLERS.get(function)
    if handler is None:
        raise unsupported_error(function)
    out = kwargs.pop("out", None)
    out = out[0] if isinstance(out, tuple) else out
    inputs = getattr(function, "nin", len(args))
    if len(args) == inputs + 1 and out is None:  # a ufunc takes it as its last argument, too
        args, out = args[:inputs], args[inputs]
    result = handler(*args, **kwargs)
    if out is None:
        return result
    store(function, out, result)
    return out


def store(function: Any, out: Any, result: Any) -> None:
    """Write the result of a NumPy function into an array that was given for it."""
    if not hasattr(out, "ids"):
        raise TypeError(
            f"np.{function.__name__} cannot write traced values into a plain array: make the array with "
            "delassus.numpy.zeros, which is traced inside a kernel."
        )
    if out.truths and not result.truths:
        raise TypeError(f"np.{function.__name__} cannot write numbers into an array of booleans.")
    out[...] = result
