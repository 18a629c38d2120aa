"""Steps of time: the compliant scheme from soft to rigid, and impacts."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.stepping.compliant.step import CompliantStep, compliant_step
    from delassus.stepping.impacts.reflections import Reflections, reflections

__all__ = [
    "CompliantStep",
    "Reflections",
    "compliant_step",
    "reflections",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "stepping.compliant.step": "CompliantStep compliant_step",
            "stepping.impacts.reflections": "Reflections reflections",
        },
    )
