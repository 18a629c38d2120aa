"""`PPO`: options of the learner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Objective:
    """What proximal policy optimisation descends.

    Attributes:
        discount: γ.
        trace: λ.
        clip: How far the ratio of probabilities may be from 1.
        entropy: Weight of the entropy.
        value_weight: Weight of the error of the value.
        gradient: Largest norm of a gradient.
        divergence: Kullback–Leibler divergence of π from π_old that an iteration aims at.

    >>> dl.learning.Objective(discount=0.99).discount
    0.99
    """

    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    value_weight: float = 0.5
    gradient: float = 1.0
    divergence: float = 0.01


@dataclass(frozen=True)
class Architecture:
    """Sizes of the networks.

    Attributes:
        policy: Of its hidden layers.
        value: Of the hidden layers of the value.
        deviation: σ of the first policy.

    >>> dl.learning.Architecture(policy=(32, 32), value=(32, 32)).deviation
    0.3
    """

    policy: tuple[int, ...] = (128, 128)
    value: tuple[int, ...] = (64, 64)
    deviation: float = 0.3


@dataclass(frozen=True)
class PPO:
    """Options of proximal policy optimisation.

    Attributes:
        items: Robots N.
        horizon: Periods T that each makes in an iteration.
        epochs: How often each sample is used.
        minibatches: Into how many parts an epoch is cut.
        learning_rate: Of Adam, to begin with; it falls, and rises, so that π moves by about the objective's
            `divergence`.
        objective: What is descended.
        networks: Sizes.
        dtype: Of the steps of robots that practise: "float64", "float32", or "auto" for "float32" wherever that can
            solve them, see `Environments`. Trials are in float64.

    >>> dl.learning.PPO(items=64, horizon=8).objective.clip
    0.2
    """

    items: int = 512
    horizon: int = 24
    epochs: int = 3
    minibatches: int = 8
    learning_rate: float = 1e-3
    objective: Objective = Objective()
    networks: Architecture = Architecture()
    dtype: str = "auto"
