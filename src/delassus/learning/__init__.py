"""Learning: tasks, batched environments, a compiled policy, and proximal policy optimization."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.learning.environment.environments import Environments, EnvironmentState, Outcome
    from delassus.learning.environment.options import PPO, Architecture, Objective
    from delassus.learning.environment.task import Evaluation, LearningTask, Moment, Verdict, lower_onto_ground
    from delassus.learning.learner.checkpoint import load_checkpoint, save_checkpoint
    from delassus.learning.learner.evaluation import evaluate
    from delassus.learning.learner.network import Network
    from delassus.learning.learner.normalizer import Normalizer
    from delassus.learning.learner.policy import Policy
    from delassus.learning.learner.ppo import Learner, Report, begin_learning, iterate
    from delassus.learning.learner.training import Budget, Progress, Training, train
    from delassus.learning.policies.bundled import bundled_policies, bundled_policy
    from delassus.learning.results.export import export_policy
    from delassus.learning.results.page import save_page
    from delassus.learning.tasks.catalog import find_task, register_task, task_names
    from delassus.simulation.policies.draws import Draws

__all__ = [
    "PPO",
    "Architecture",
    "Budget",
    "Draws",
    "EnvironmentState",
    "Environments",
    "Evaluation",
    "Learner",
    "LearningTask",
    "Moment",
    "Network",
    "Normalizer",
    "Objective",
    "Outcome",
    "Policy",
    "Progress",
    "Report",
    "Training",
    "Verdict",
    "begin_learning",
    "bundled_policies",
    "bundled_policy",
    "evaluate",
    "export_policy",
    "find_task",
    "iterate",
    "load_checkpoint",
    "lower_onto_ground",
    "register_task",
    "save_checkpoint",
    "save_page",
    "task_names",
    "train",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "learning.tasks.catalog": "find_task register_task task_names",
            "learning.learner.checkpoint": "load_checkpoint save_checkpoint",
            "simulation.policies.draws": "Draws",
            "learning.environment.environments": "Environments EnvironmentState Outcome",
            "learning.learner.evaluation": "evaluate",
            "learning.policies.bundled": "bundled_policies bundled_policy",
            "learning.results.export": "export_policy",
            "learning.learner.network": "Network",
            "learning.learner.normalizer": "Normalizer",
            "learning.environment.options": "Architecture Objective PPO",
            "learning.results.page": "save_page",
            "learning.learner.policy": "Policy",
            "learning.learner.ppo": "Learner Report begin_learning iterate",
            "learning.environment.task": "Evaluation LearningTask Moment Verdict lower_onto_ground",
            "learning.learner.training": "Budget Progress Training train",
        },
    )
