"""The code of README and guides runs as it is printed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/kernels.md",
        "docs/robots.md",
        "docs/constraints.md",
        "docs/closed_loops.md",
        "docs/contact.md",
        "docs/compliant.md",
        "docs/stepping.md",
        "docs/simulation.md",
        "docs/large.md",
        "docs/control.md",
        "docs/reactive.md",
        "docs/sampling.md",
        "docs/learning.md",
        "docs/errata.md",
        "docs/errors.md",
        "docs/coming_from.md",
        "docs/theory/gauss.md",
        "docs/theory/proximal.md",
        "docs/theory/factorizations.md",
        "docs/theory/contact.md",
        "docs/theory/compliant.md",
        "docs/theory/drift.md",
    ],
)
def test_python_blocks_run_in_order(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, "the page has no code"
    exec("\n".join(blocks), {"__name__": page})


def test_pages_that_are_linked_exist():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
