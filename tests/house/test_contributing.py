"""The pages for contributors: recipes run as they are printed, and the files and folders that are named exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from delassus.compiler.backends.target import Target

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "delassus"
PAGES = {name: (ROOT / f"{name}.md").read_text() for name in ("ARCHITECTURE", "CONTRIBUTING")}
RECIPES = dict(re.findall(r"^### ([^\n]+)\n.*?^```python\n(.*?)^```", PAGES["CONTRIBUTING"], re.DOTALL | re.MULTILINE))
EXTENSIONS = re.findall(
    r"^\| (?P<what>[^|]+) \| (?P<file>[^|]*) \|[^|]*\| (?P<places>[\d–]+) \|$", PAGES["ARCHITECTURE"], re.MULTILINE
)
MOST_PLACES = 2


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_runs_as_it_is_printed(title, tmp_path):
    """In a process of its own, where what it registers stays, and with code that is compiled as in other tests."""
    effort = f"from {Target.__module__} import Target\nhost = Target.host().with_opt({Target.host().opt})\n"
    command = [sys.executable, "-W", "error", "-c", f"{effort}Target.host = lambda: host\n{RECIPES[title]}"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_there_is_a_recipe_for_every_kind_of_extension():
    assert len(RECIPES) == 8


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:[\w.]+/)+(?:\w+\.\w+)?)`", PAGES[page])
    assert named
    for path in named:
        assert (ROOT / path).exists() or (SOURCE / path).exists(), f"{page}.md names {path}"


@pytest.mark.parametrize(("what", "file", "places"), EXTENSIONS)
def test_nothing_is_added_in_more_than_two_places(what, file, places):
    assert int(places[-1]) <= MOST_PLACES


def test_registrations_that_are_named_exist():
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    functions = re.findall(r"`@?((?:register_|pair|elementary)\w*)", PAGES["ARCHITECTURE"])
    assert len(functions) >= len(RECIPES)
    for function in functions:
        assert f"def {function}(" in text
