"""The robots of example-robot-data in random states, here and in Pinocchio."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from robots import FILES, REFUSED_BY_PINOCCHIO, pinocchio_model

ROBOTS = [path for path in FILES if path.name not in REFUSED_BY_PINOCCHIO]
IMMOBILE = {"iris_simple.urdf", "quadrotor_base.urdf"}  # no joint moves unless the root is free
CASES = [(path, root) for path in ROBOTS for root in ("fixed", "free") if root == "free" or path.name not in IMMOBILE]


def _param(path: Path, root: str, share: int = 1) -> Any:
    """Half of the robots stand and the other half floats, or one in `share` of both; others are for `make test-all`."""
    number = ROBOTS.index(path)
    quick = path.name in IMMOBILE or (root == ("fixed", "free")[number % 2] and number // 2 % share == 0)
    return pytest.param(path, root, id=f"{path.name}-{root}", marks=() if quick else pytest.mark.slow)


every_robot = pytest.mark.parametrize(("path", "root"), [_param(*case) for case in CASES])
every_other_robot = pytest.mark.parametrize(("path", "root"), [_param(*case, share=2) for case in CASES])
REFERENCES = {"LOCAL": pin.LOCAL, "WORLD": pin.WORLD, "LOCAL_WORLD_ALIGNED": pin.LOCAL_WORLD_ALIGNED}


@dataclass
class Case:
    """A robot in a random state, here and in Pinocchio."""

    model: dl.Model
    theirs: Any
    data: Any
    q: Any
    v: Any
    a: Any

    @property
    def pq(self):
        return dl.q_to_pinocchio(self.model, self.q)

    @property
    def frame(self) -> tuple[str, int]:
        """The deepest frame whose name is not taken twice (a joint and a link may share one): its name and index."""
        names = [f.name for f in self.theirs.frames]
        depths = [len(self.theirs.supports[f.parentJoint]) for f in self.theirs.frames]
        index = max((i for i, name in enumerate(names) if names.count(name) == 1), key=depths.__getitem__)
        return self.theirs.frames[index].name, index


@cache
def case(path: Path, root: str) -> Case:
    theirs = pinocchio_model(path, root)
    model = dl.load(path, root=root, mimic="ignore")
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, a = rng.normal(size=(2, model.nv))
    return Case(model, theirs, theirs.createData(), q, v, a)


def mass_matrix(c: Case):
    M = pin.crba(c.theirs, c.data, c.pq)
    return np.triu(M) + np.triu(M, 1).T
