"""`PPO`: options of the learner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Objective:
    """The objective of proximal policy optimization.

    Attributes:
        discount: Discount factor γ.
        trace: λ of generalized advantage estimation.
        clip: Largest deviation of the ratio of probabilities from 1.
        entropy: Weight of the entropy.
        value_weight: Weight of the squared error of the value.
        gradient: Largest norm of a gradient; longer ones are scaled down.
        divergence: Target of the Kullback–Leibler divergence of π from π_old in an iteration.

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
        policy: Sizes of the hidden layers of the policy.
        value: Sizes of the hidden layers of the value.
        deviation: Initial standard deviation σ of actions.

    >>> dl.learning.Architecture(policy=(32, 32), value=(32, 32)).deviation
    0.3
    """

    policy: tuple[int, ...] = (128, 128)
    value: tuple[int, ...] = (64, 64)
    deviation: float = 0.3


@dataclass(frozen=True)
class PPO:
    """Options of proximal policy optimization.

    Attributes:
        items: Number of environments N.
        horizon: Number of control periods T of each environment in an iteration.
        epochs: Number of passes over the samples.
        minibatches: Number of minibatches in an epoch.
        learning_rate: Initial learning rate of Adam; it is adapted so that the divergence of π from π_old is about the
            objective's `divergence`.
        objective: The objective that is minimized.
        networks: Sizes of the networks.
        dtype: The dtype of steps in training: "float64", "float32", or "auto" for "float32" if it can solve the
            robot's steps (see `Environments`). Trials are in float64.

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
