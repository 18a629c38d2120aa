"""Checks of available memory before allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delassus.common.memory import free_memory
from delassus.errors import DelassusError

if TYPE_CHECKING:
    from delassus.particles.description.particles import Particles

_SHARE: Final = 0.8
"""Fraction of the available memory that a system may take."""


class MemoryWillNotSuffice(DelassusError, RuntimeError):
    """A system that does not fit into memory.

    Attributes:
        needed: Required memory [bytes].
        available: Available memory [bytes].
    """

    code = "out-of-memory"

    def __init__(self, label: str, needed: float, available: float, remedy: str) -> None:
        super().__init__(
            f"{label} needs about {_format_size(needed)} of memory, and {_format_size(available)} are free. "
            f"Take fewer particles, or {remedy}."
        )
        self.needed, self.available = needed, available


def required_memory(particles: Particles) -> float:
    """Memory of the matrices of a step, without factors [bytes]."""
    pairs = sum(len(group) * group.kind.points**2 for group in particles.elements)
    return 8.0 * (9 * 3 * pairs + 40 * pairs + 60 * particles.nodes)


def check_memory(particles: Particles) -> None:
    """Raise an error if the matrices of a step do not fit into memory."""
    check_bytes(f"a step of {particles!r}", required_memory(particles))


def check_bytes(label: str, required: float, remedy: str = "the method 'cg', which needs no factor") -> None:
    """Raise an error if this number of bytes is not available."""
    available = free_memory()
    if required > _SHARE * available:
        raise MemoryWillNotSuffice(label, required, available, remedy)


def _format_size(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
