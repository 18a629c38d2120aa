"""Policies and simulations for tests: a network with noise on a cart with a pole, and on a quadruped."""

from __future__ import annotations

import numpy as np

import delassus as dl
import delassus.numpy as dnp
from delassus.simulation import CompiledPolicy, position_servos

CART = dl.load("cart_pole")
CART_SIM = dl.Simulation(CART, time_step=5e-3, substeps=2, touching=())
DOG = dl.load("quadruped")
HOME = DOG.posture("home")
DOG_SIM = dl.Simulation(
    DOG, time_step=2e-3, substeps=5, actuators=position_servos(DOG, 100.0, 3.0), touching="*_calf_1"
)


def network(q, v, last, weights):
    return dnp.tanh(weights @ dnp.concatenate([q, v, last]))


@dl.kernel("(nq),(nv),(last),(last)->(last)", shared={"weights": "(last,inputs)"})
def outside(sizes, q, v, last, noise, *, weights):
    return network(q, v, last, weights) + 0.1 * noise


class Sizes:
    """Sizes of the network of a robot, as a kernel reads them."""

    def __init__(self, model, last):
        self.model, self.nq, self.nv, self.last = model, model.nq, model.nv, last
        self.inputs = model.nq + model.nv + last

    def __eq__(self, other):
        return type(other) is Sizes and vars(other) == vars(self)

    def __hash__(self):
        return hash((self.model, self.last))


def act(now, *, weights):
    action = network(now.q, now.v, now["last"], weights) + now.draws.normal(0.1, now["last"].shape)
    return {"control": now["offset"] + action[: now["offset"].shape[0]], "last": action}


def judge(now):
    return {"distance": now["distance"] + now.v[0], "height": now.q[0]}


def policy_for(sim, last, offset, seed=0):
    weights = 0.3 * np.random.default_rng(seed).normal(size=(last, sim.model.nq + sim.model.nv + last))
    memory = {"last": np.zeros(last), "offset": offset, "distance": 0.0, "height": 0.0}
    return CompiledPolicy(act, after=judge, memory=memory, shared={"weights": weights})


CASES = {
    "cart": (CART_SIM, np.array([0.0, 0.1]), policy_for(CART_SIM, 2, np.zeros(CART_SIM.nu))),
    "dog": (DOG_SIM, HOME, policy_for(DOG_SIM, 12, HOME[7:])),
}
