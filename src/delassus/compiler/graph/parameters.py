"""Models with parameters: values that are inputs of the compiled code instead of constants."""

from __future__ import annotations

from typing import Any, Final

PARAMETERS: Final = "parameters"
"""The name of the last input of every kernel for a model with parameters."""


class Parametric:
    """Base class of models with parameters.

    A kernel for such a model takes an additional array (nparameters,), and its function receives the result of
    `with_parameters`. The function need not know this: traced values take the place of constants.
    """

    @property
    def nparameters(self) -> int:
        """Number of parameters."""
        raise TypeError(f"{type(self).__name__} does not define nparameters.")

    def parameters(self) -> Any:
        """The default parameters (nparameters,)."""
        raise TypeError(f"{type(self).__name__} does not define its default parameters; implement parameters().")

    def with_parameters(self, parameters: Any) -> Any:
        """The model with these parameters (nparameters,), traced or plain."""
        raise TypeError(
            f"{type(self).__name__} does not define with_parameters() for its {len(parameters)} parameters."
        )


class ParametricComposite(Parametric):
    """Base class of objects with a part that has parameters, such as a mechanism and its model; the parameters are the
    same.
    """

    @property
    def parametric_part(self) -> Parametric:
        """The part with parameters."""
        raise TypeError(f"{type(self).__name__} does not define parametric_part, the part with parameters.")

    @property
    def nparameters(self) -> int:
        """Number of parameters."""
        return self.parametric_part.nparameters

    def parameters(self) -> Any:
        """The default parameters (nparameters,)."""
        return self.parametric_part.parameters()
