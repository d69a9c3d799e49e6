"""Plots of the benchmark's rows, as SVG: a bar from 1 to each ratio, logarithmic, with the spread of its rounds.

Pure: from rows of the JSON to text.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import Any

LABEL_PX, PLOT_PX, ROW_PX, TOP_PX, END_PX = 430, 440, 22, 46, 60
LEAST, GREATEST = 0.03, 30.0
TICKS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
BETTER, WORSE, TEXT, LINE = "#2a7f62", "#b3542e", "#444", "#ccc"


def place(ratio: float) -> float:
    """Return the x of a ratio; ratios beyond the scale are at its end."""
    inside = min(max(ratio, LEAST), GREATEST)
    return LABEL_PX + PLOT_PX * log10(inside / LEAST) / log10(GREATEST / LEAST)


def plot(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """One plot: a line per row, the aim as a small mark."""
    width, height = LABEL_PX + PLOT_PX + END_PX, TOP_PX + ROW_PX * len(rows) + 12
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            f'font-size="12" fill="{TEXT}"><rect width="{width}" height="{height}" fill="#fff"/>'
        ),
        f'<text x="8" y="18" font-size="14">{escape(title)}</text>',
    ]
    for tick in TICKS:
        x, width_px = place(tick), 2 if tick == 1 else 1
        parts.append(f'<text x="{x:.0f}" y="34" text-anchor="middle">{tick:g}</text>')
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="38" y2="{height - 8}" stroke="{LINE}" stroke-width="{width_px}"/>'
        )
    for number, row in enumerate(rows):
        parts += _bar(row, TOP_PX + ROW_PX * number)
    return "\n".join((*parts, "</svg>")) + "\n"


def _bar(row: Mapping[str, Any], top: float) -> list[str]:
    ratio, middle = row["ratio"], top + ROW_PX / 2
    one, end, aim = place(1.0), place(ratio), place(row["bound"])
    colour = BETTER if (ratio >= 1) == row["higher_is_better"] else WORSE
    least, greatest = place(min(row["ratios"])), place(max(row["ratios"]))
    label = escape(f"{row['figure']}: {row['unit']}")
    left, width = min(one, end), max(abs(end - one), 1)
    return [
        f'<text x="{LABEL_PX - 8}" y="{middle + 4:.0f}" text-anchor="end">{label}</text>',
        f'<rect x="{left:.1f}" y="{top + 4:.0f}" width="{width:.1f}" height="{ROW_PX - 8}" fill="{colour}"/>',
        f'<line x1="{least:.1f}" x2="{greatest:.1f}" y1="{middle:.0f}" y2="{middle:.0f}" stroke="#000"/>',
        f'<path d="M{aim:.1f} {top + 2:.0f}v{ROW_PX - 4}" stroke="#000" stroke-dasharray="2 2"/>',
        f'<text x="{LABEL_PX + PLOT_PX + 8}" y="{middle + 4:.0f}">{ratio:.2f}</text>',
    ]
