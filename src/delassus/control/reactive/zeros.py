"""Where the matrices of a controller's programs are zero in every state: known from its traced program."""

from __future__ import annotations

from functools import lru_cache

from delassus.control.programmes.shape import ProgrammeShape
from delassus.control.reactive.build import build_programme
from delassus.control.reactive.data import ControlData


@lru_cache(maxsize=32)
def shape_of(control: ControlData) -> ProgrammeShape:
    """The shape of its programmes."""
    results = build_programme.program(control).results  # a zero that is known has the number 0
    H, A, C, K = ("".join("0" if x == 0 else "1" for x in results[k]) for k in (0, 2, 4, 7))
    cones = (3,) * (control.cone_rows // 3)
    return ProgrammeShape(control.n, control.equalities, control.rows, cones, (H, A, C, K))
