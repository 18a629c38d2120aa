"""Models with parameters: values that are inputs of the compiled code instead of constants."""

from __future__ import annotations

from typing import Any, Final

PARAMETERS: Final = "parameters"
"""The name of the input that every kernel has for a model with parameters, after all others."""


class Parametric:
    """What a model derives from to have parameters.

    A kernel for such a model takes one more array (nparameters,), and its function gets the model that
    `with_parameters` makes of it. The functions need not know: they meet traced values where other models have numbers.
    """

    @property
    def nparameters(self) -> int:
        """Number of parameters."""
        raise TypeError(f"{type(self).__name__} does not say how many parameters it has.")

    def parameters(self) -> Any:
        """The parameters (nparameters,) that the model has unless others are given."""
        raise TypeError(f"{type(self).__name__} does not say which parameters it has unless others are given.")

    def with_parameters(self, parameters: Any) -> Any:
        """A model whose numbers are these parameters (nparameters,), traced or plain."""
        raise TypeError(f"{type(self).__name__} does not say what its {len(parameters)} parameters mean.")


class ParametricComposite(Parametric):
    """What is made of a part that has parameters, such as a mechanism of its model: it has the same ones."""

    @property
    def parametric_part(self) -> Parametric:
        """The part that has them."""
        raise TypeError(f"{type(self).__name__} does not say which of its parts has parameters.")

    @property
    def nparameters(self) -> int:
        """Number of parameters."""
        return self.parametric_part.nparameters

    def parameters(self) -> Any:
        """The parameters (nparameters,) that the model has unless others are given."""
        return self.parametric_part.parameters()
