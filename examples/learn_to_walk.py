"""A quadruped learns to walk: half a minute on two cores, then a page with the curves of learning and a film.

python examples/learn_to_walk.py [--minutes 1] [--seed 0] [--out output/walk]
"""

import argparse
from pathlib import Path

from delassus.learning import Budget, find_task, train
from delassus.learning.results.session import FILM, PAGE, progress_line, show

NAME = "quadruped-walk"


def main() -> None:
    """Learn, and show it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("output/walk"))
    given = parser.parse_args()

    def tell(progress):
        if progress.iteration % 10 == 0:
            print(progress_line(NAME, progress, given.minutes), flush=True)

    task, budget = find_task(NAME), Budget(minutes=given.minutes)
    training = train(NAME, task, seed=given.seed, budget=budget, out=given.out, progress=tell)
    print(f"{training.ending}; four robots that follow the policy: {show(given.out, NAME, task, training)}")
    print(f"Open {given.out / FILM} in a browser; the curves are in {given.out / PAGE}.")


if __name__ == "__main__":
    main()
