"""Impacts of several contacts within a step: who strikes, and the jump of velocities by reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.solvers.status import Status
from delassus.step.compliant.response import Response
from delassus.step.compliant.values import State
from delassus.step.impacts.reflecting import held, reflected
from delassus.step.impacts.strikes import Strikes, strikes, touching
from delassus.step.scheme.blend import Blend


class Blow(NamedTuple):
    """An impact of several contacts: which strike, the jump of velocities (nv,), the impulses (m,), and its status."""

    strikes: Strikes
    change: Any
    impulse: Any
    status: Any


def struck(state: State, response: Response, G: Any, blend: Blend, freely: Any, restitution: Any) -> Blow:
    """What reflections do where contacts strike; W is M in it, as an impact takes no time."""
    scene, normals = state.scene, list(state.scene.normals)
    before, after = state.rate[normals], freely[normals]
    found = strikes(state.motions.model, blend, state.gap, before, after, restitution)
    on = touching(found, blend, state.gap, before, after)
    ahead = (found.share + blend.beta - 0.5) * (after - before)
    ties = list(range(scene.m)[scene.bilateral])
    inner, answer = held(G, normals, ties)
    played = reflected(inner, before + ahead, on, restitution)
    impulse = np.zeros(scene.m)
    impulse[normals] = played.impulse
    if answer is not None:
        impulse[ties] = answer @ played.impulse
    status = np.where(played.settled, float(Status.CONVERGED), float(Status.ITERATIONS))
    return Blow(found, response.apply(impulse), impulse, status)
