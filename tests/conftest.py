"""What all tests share: a disk cache of their own, quick compilation, and the examples of property tests.

- One session has one disk cache, which all its processes share; it neither uses nor fills the user's.
- BLAS has one thread: its threads spin while they wait for each other, and workers leave no core for them. A matrix of
  150 rows then takes 60 ms to solve instead of 1.
- LLVM works at its lowest effort, which gives the same bits in half the time. Tests whose subject is the code that
  users get compile for `native_bits.FULL`; with `--full-effort` all do.
- `-m smoke` reads the modules that have smoke tests and no others: these may need packages that are not installed.
- Property tests try the same examples each time, a third of them by default ("quick", see `how_many`), all of them with
  `--hypothesis-profile=fixed`. With `--hypothesis-profile=random` they try others, and the seed is printed at the end:
  `--hypothesis-seed` repeats them. There is no deadline: machines may be slow and busy.
"""

import gc
import os
import secrets
import tempfile

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # it is read when NumPy is imported

from delassus.compiler.backends.target import Target

if "PYTEST_XDIST_WORKER" not in os.environ:  # those who have it were started with the folder of the one who has not
    _folder = tempfile.TemporaryDirectory(prefix="delassus-tests-")
    os.environ["DELASSUS_CACHE"] = _folder.name

settings.register_profile("quick", deadline=None, derandomize=True, max_examples=33)
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, derandomize=False, database=None, print_blob=True)
settings.load_profile("quick")


def pytest_addoption(parser):
    parser.addoption("--full-effort", action="store_true", help="let LLVM optimize every kernel as it does for users")


@pytest.hookimpl(tryfirst=True)  # Hypothesis reads its options when it is configured
def pytest_configure(config):
    if config.getoption("--hypothesis-profile") == "random" and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))
    if not config.getoption("--full-effort"):
        quick = Target.host().with_opt(0)
        Target.host = staticmethod(lambda: quick)


def pytest_ignore_collect(collection_path, config):
    """Whether a file is of no interest; None leaves that to others."""
    if config.getoption("-m") != "smoke" or collection_path.suffix != ".py":
        return None
    return None if "pytest.mark.smoke" in collection_path.read_text() else True


def pytest_collection_finish():
    """All modules are there, and stay: tests that search for garbage need not look at them again and again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--hypothesis-profile") == "random":
        terminalreporter.write_line(f"Random examples: --hypothesis-seed={config.getoption('--hypothesis-seed')}")
