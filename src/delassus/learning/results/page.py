"""A page with learning curves, as one self-contained HTML file."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from typing import Any, Final

from delassus.common.archives import write
from delassus.learning.errors import CheckpointError
from delassus.learning.learner.training import Progress

_WIDTH: Final = 420
_HEIGHT: Final = 200
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;color:#222;background:#fff}"
    "figure{display:inline-block;margin:0 1em 1.5em 0}figcaption{font-weight:600}"
    "svg{background:#f6f7f9}path{fill:none;stroke:#1764b5;stroke-width:1.5}text{font-size:11px;fill:#555}"
)


def save_page(
    path: str | os.PathLike[str], title: str, history: Sequence[Progress], film: str = "", verdict: str = ""
) -> None:
    """Write the curves of all that was reported over the seconds of learning; `film` is a file to link to.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "learning.html"
    >>> dl.learning.save_page(path, "cart-pole", [])
    >>> path.exists()
    True
    """
    curves: dict[str, list[float]] = {"reward of a period": [p.report.reward for p in history]}
    curves["falls per second"] = [p.report.falls for p in history]
    for name in history[0].report.measures if history else ():
        curves[name.replace("_", " ")] = [p.report.measures[name] for p in history]
    curves["standard deviation of actions"] = [p.report.deviation for p in history]
    curves["environment steps per second"] = [p.steps_per_second for p in history]
    seconds = [p.seconds for p in history]
    figures = "\n".join(_figure(name, seconds, values) for name, values in curves.items())
    shown = f'<p><a href="{html.escape(film)}">The gait as a film</a></p>' if film else ""
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{html.escape(title)}</h1><p>{html.escape(verdict)}</p>{shown}"
        f"<p>Over the seconds since the start, compilation and trials included:</p>{figures}</html>\n"
    )
    write("the page", path, lambda file: file.write(text.encode()), CheckpointError)


def _number(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 1000.0 else f"{x:.3g}"


def _figure(name: str, seconds: Sequence[float], values: Sequence[float]) -> str:
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = min(low, 0.0)
    span, end = (high - low) or 1.0, max(seconds, default=1.0) or 1.0
    points: list[Any] = [
        f"{50 + (_WIDTH - 60) * s / end:.1f},{_HEIGHT - 25 - (_HEIGHT - 40) * (v - low) / span:.1f}"
        for s, v in zip(seconds, values, strict=True)
    ]
    path = f'<path d="M{" L".join(points)}"/>' if points else ""
    labels = (
        f'<text x="4" y="19">{_number(high)}</text><text x="4" y="{_HEIGHT - 22}">{_number(low)}</text>'
        f'<text x="50" y="{_HEIGHT - 8}">0 s</text>'
        f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 8}" text-anchor="end">{end:.0f} s</text>'
    )
    return (
        f'<figure><figcaption>{html.escape(name)}</figcaption><svg width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{html.escape(name)} over the seconds of learning">{path}{labels}</svg></figure>'
    )
