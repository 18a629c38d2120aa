"""The error class of simulations and of the shapes that may touch in them."""

from __future__ import annotations

from delassus.errors import BadArgument


class SimulationError(BadArgument):
    """An invalid ground, selection of shapes, start, control or option of a simulation."""
