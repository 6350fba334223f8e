"""Draws samples as an SVG: one panel per measure, with time from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .samples import MEASURES, Measure, Sample

__all__ = ["svg"]

WIDTH, PANEL, LEFT, TOP, GAP = 800, 110, 60, 30, 34
STYLE = (
    "text{font:12px sans-serif;fill:#333}.axis{stroke:#bbb;fill:none}"
    ".line{stroke:#1f5fa8;fill:none;stroke-width:1.5}.back{fill:#fff}"
)


def svg(samples: Sequence[Sample], title: str) -> str:
    """Returns the SVG of a run."""
    height = TOP + len(MEASURES) * (PANEL + GAP) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}"/>',
    ]
    for number, measure in enumerate(MEASURES):
        parts += _panel(samples, measure, TOP + number * (PANEL + GAP))
    minutes = samples[-1].at / 60
    parts.append(f'<text x="{LEFT}" y="{height - 8}">0</text>')
    parts.append(
        f'<text x="{WIDTH - 10}" y="{height - 8}" text-anchor="end">{minutes:.1f} min</text>'
    )
    return "\n".join([*parts, "</svg>\n"])


def _panel(samples: Sequence[Sample], measure: Measure, top: int) -> list[str]:
    values = [measure.of(sample) for sample in samples]
    most = max(values) * 1.05 or 1.0
    right, bottom = WIDTH - 10, top + PANEL

    def point(sample: Sample) -> str:
        x = LEFT + (right - LEFT) * sample.at / samples[-1].at
        return f"{x:.1f},{bottom - PANEL * measure.of(sample) / most:.1f}"

    return [
        f'<text x="{LEFT}" y="{top - 6}">{escape(measure.title)}</text>',
        f'<path class="axis" d="M{LEFT} {top}V{bottom}H{right}"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most:.0f}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<polyline class="line" points="{" ".join(map(point, samples))}"/>',
    ]
