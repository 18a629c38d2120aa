"""Structural zeros of a controller's QP, found by tracing."""

from __future__ import annotations

from functools import lru_cache

from delassus.control.qp.shape import QPShape
from delassus.control.reactive.build import build_qp
from delassus.control.reactive.data import ControlData


@lru_cache(maxsize=32)
def shape_of(control: ControlData) -> QPShape:
    """The shape of its QPs."""
    results = build_qp.program(control).results  # structural zeros have the index 0
    H, A, C, K = ("".join("0" if x == 0 else "1" for x in results[k]) for k in (0, 2, 4, 7))
    cones = (3,) * (control.cone_rows // 3)
    return QPShape(control.n, control.equalities, control.rows, cones, (H, A, C, K))
