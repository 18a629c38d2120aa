"""What a type checker knows of the package: the code of the README, checked as strictly as its users might."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REVEALED = """
reveal_type(dl.aba(robot, q, v, tau))
reveal_type(dl.caba(welded, q, v, tau, iterations=2))
reveal_type(dl.constrained_dynamics(welded, q, v, tau, tolerance=1e-8).describe())
reveal_type(dl.impact(welded, q, v))
"""


@pytest.mark.slow
def test_the_readmes_code_passes_a_strict_type_checker(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    page = tmp_path / "readme.py"
    page.write_text("\n".join(blocks) + REVEALED)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    errors = [line for line in done.stdout.splitlines() if "error" in line and "Found" not in line]
    assert not errors, "\n".join(errors)
    shown = [line.partition('"')[2] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert [text.partition("[")[0].rpartition(".")[2].rstrip('"') for text in shown[:2]] == ["ndarray", "tuple"]
    assert shown[2].rstrip('"').endswith("str")
    assert "Impact" in shown[3]
