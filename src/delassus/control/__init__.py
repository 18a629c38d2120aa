"""Control: torques for a motion that is asked for, under constraints; tasks; linear models."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.control.inverse.actuated import Actuated

__all__ = [
    "Actuated",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "control.inverse.actuated": "Actuated",
        },
    )
