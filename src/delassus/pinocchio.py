"""Conversion to and from Pinocchio: models, and configurations in its layout."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.model.converters.pinocchio import from_pinocchio, q_from_pinocchio, q_to_pinocchio

__all__ = [
    "from_pinocchio",
    "q_from_pinocchio",
    "q_to_pinocchio",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "model.converters.pinocchio": "from_pinocchio q_from_pinocchio q_to_pinocchio",
        },
    )
