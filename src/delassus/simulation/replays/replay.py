"""Replay of one environment of a run, bit for bit.

An environment moves alone exactly as in its batch. So it can be replayed alone, from the last recorded state before
the period in question, with the recorded inputs.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from delassus.output.contacts import ContactRecord
from delassus.output.errors import NotRecorded
from delassus.output.replay_record import ReplayRecord
from delassus.output.trajectory import Trajectory
from delassus.simulation.controls import control_of
from delassus.simulation.initial_states import ground_of_items
from delassus.simulation.pushes import Push
from delassus.simulation.runner import Runner
from delassus.simulation.setup import Setup
from delassus.simulation.state import State


class Replay(NamedTuple):
    """One environment at a control period: the state at its beginning, and its inputs.

    Attributes:
        sim: The simulation of this environment alone.
        state: At the beginning of the period, before its kick.
        control: (nu,), a `CompiledPolicy` that reads it, or None.
        push: Or None.
    """

    sim: Any
    state: State
    control: Any
    push: Push | None


def replay(log: Trajectory, at: tuple[int, ...], period: int) -> Replay:
    """Replay an environment of a log up to the beginning of a control period of the run.

    Raises `NotRecorded` with a message that names the missing data.
    """
    sim, record, run = log.simulation, log.replay, log.run
    if sim is None or run is None:
        raise NotRecorded("The log has no simulation, which a replay needs: load it with its simulation.")
    periods = [run.periods(t) for t in log.time]
    k = max((k for k, past in enumerate(periods) if past <= period), default=None)
    if k is None:
        raise NotRecorded("The log begins after that period.")
    state, batch = log[(k, *at)], log.q.shape[1:-1]
    number = int(np.ravel_multi_index(at, batch)) if batch else 0
    alone = item_simulation(sim, number, batch)
    if record is None:
        if periods[k] < period:
            raise NotRecorded(
                "The states in between were not recorded: run with every=1, or with "
                'record="replay", to see the step in which the failure began.'
            )
        return Replay(alone, state, None, None)
    if record.control is None:
        raise NotRecorded("The controls were compiled into the step, and files do not contain them.")
    for past in range(periods[k], period):
        state = _restarted(record, past, number, state)
        state = take_period(Replay(alone, state, *_inputs(record, past, at, batch)))
    return Replay(alone, _restarted(record, period, number, state), *_inputs(record, period, at, batch))


def replayed_log(log: Trajectory, at: tuple[int, ...], first: int, last: int) -> Trajectory:
    """Replay the states of an environment from the beginning of one control period to that of another."""
    current = replay(log, at, first)
    sim, record, run, batch = current.sim, log.replay, log.run, log.q.shape[1:-1]
    assert record is not None and run is not None
    number, states = int(np.ravel_multi_index(at, batch)) if batch else 0, [current.state]
    for k in range(first, last):
        state = take_period(Replay(sim, states[-1], *_inputs(record, k, at, batch)))
        states.append(_restarted(record, k + 1, number, state))
    arrays: dict[str, Any] = {
        name: np.stack([getattr(one, name) for one in states]) for name in ("q", "v", "status", "residual")
    }
    impulse, contact = (np.stack([getattr(one, name) for one in states]) for name in ("impulse", "contact"))
    return Trajectory(
        run.begin + sim.period * np.arange(first, last + 1.0),
        **arrays,
        mechanism=sim.mechanism,
        contacts=ContactRecord(impulse, contact, sim.time_step, sim.candidates, sim.scene.contact_rows),
        simulation=sim,
        parameters=current.state.parameters if sim.nparameters else None,
        activation=np.stack([one.activation for one in states]) if sim.scene.na else None,
        tally=np.stack([one.tally for one in states]) if sim.scene.tracked else None,
        memory=np.stack([one.memory for one in states]) if states[0].memory.shape[-1] else None,
    )


def take_period(current: Replay) -> State:
    """Simulate one control period, and return the state after it."""
    control = control_of(current.sim, current.control, 1, ())
    runner = Runner(current.sim, current.state, control, bound=False, pushes=current.push)
    runner.step(0)
    return runner.state()


def item_simulation(sim: Any, number: int, batch: tuple[int, ...]) -> Any:
    """The simulation of one item of a batch: on its own ground."""
    if not sim.ground.batch:
        return sim
    ground = ground_of_items(sim.ground, batch, np.array([number]))
    for name in ("friction", "torsional", "rolling", "restitution", "height", "normal"):
        x = getattr(ground, name)
        if np.ndim(x) > (name == "normal"):
            object.__setattr__(ground, name, np.asarray(x)[0])
    alone: Setup = copy(sim)
    for cached in ("_alone", "_with_memory"):
        alone.__dict__.pop(cached, None)
    alone.__dict__["ground"] = ground
    return alone


def _inputs(record: ReplayRecord, k: int, at: tuple[int, ...], batch: tuple[int, ...]) -> tuple[Any, Push | None]:
    """Control and push of an item in the k-th period."""
    control = None if record.control is None else _of_item(record.control[k], 1, at, batch)
    if record.policy is not None:
        control = replace(record.policy, reference=control)
    push = record.pushes.get(k)
    if push is None:
        return control, None
    wrench = {} if push.wrench is None else dict(zip(push.frames, _of_item(push.wrench, 2, at, batch), strict=True))
    return control, Push(wrench, None if push.kick is None else _of_item(push.kick, 1, at, batch))


def _of_item(x: Any, core: int, at: tuple[int, ...], batch: tuple[int, ...]) -> Any:
    """An item's part of an array (…, core axes) that broadcasts to the batch."""
    end = np.shape(x)[np.ndim(x) - core :]
    return np.broadcast_to(x, (*batch, *end))[at]


def _restarted(record: ReplayRecord, k: int, number: int, state: State) -> State:
    """The state of an item, or that with which it starts again before the k-th period."""
    reset = record.resets.get(k)
    if reset is None or number not in reset.items:
        return state
    i = int(np.flatnonzero(reset.items == number)[0])
    restarted = State(**{name: x[i] for name, x in reset.parts.items()})
    if record.policy is None:
        return restarted
    return replace(restarted, memory=record.policy.fill(restarted.memory, ()))
