"""One self-contained HTML page: tables, and plots as inline SVG."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import log10

COLOURS = ("#c2410c", "#1d4ed8", "#15803d", "#7e22ce", "#be185d", "#0e7490")
_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1f2328 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #d0d7de; text-align: right; white-space: nowrap }
td.word:last-child { white-space: normal; overflow-wrap: anywhere }
th.word, td.word { text-align: left } th { vertical-align: bottom; white-space: normal }
.scroll { overflow-x: auto } .plots { display: flex; flex-wrap: wrap; gap: 1rem } figure { margin: 0 }
.captioned { width: 340px } .captioned p { margin: .2rem 0; font-size: 14px }
.verdict { font-size: 19px; font-weight: 600; color: #15803d } .verdict.bad { color: #dc2626 }
figcaption { font-weight: 600; font-size: 13px } svg text { font: 11px system-ui, sans-serif; fill: #57606a }
figure .key { margin: .1rem 0; font-size: 13px }
.key span { display: inline-block; margin-right: 1.2rem } .key i { display: inline-block; width: .9em; height: .9em }
@media (prefers-color-scheme: dark) {
 body { background: #0d1117; color: #e6edf3 } th, td { border-color: #30363d } svg text { fill: #9198a1 }
}
"""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 340, 190, 46, 24


def page(title: str, sections: Iterable[str]) -> str:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(sections) + "\n</body></html>\n"


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def verdict_line(text: str, *, is_good: bool) -> str:
    return f'<p class="verdict{"" if is_good else " bad"}">{escape(text)}</p>'


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        shown = (
            f"<{tag}{' class=word' if number < words else ''}>{escape(cell)}</{tag}>"
            for number, cell in enumerate(cells)
        )
        return f"<tr>{''.join(shown)}</tr>"

    body = "\n".join(row(cells, "td") for cells in rows)
    return f'<div class="scroll"><table><thead>{row(head, "th")}</thead><tbody>\n{body}\n</tbody></table></div>'


def colour_key(names: Sequence[str], colours: Sequence[str] = COLOURS) -> str:
    shown = (
        f'<span><i style="background:{colour}"></i> {escape(name)}</span>'
        for name, colour in zip(names, colours, strict=False)
    )
    return f'<p class="key">{"".join(shown)}</p>'


def plots(figures: Iterable[str]) -> str:
    return f'<div class="plots">{"".join(figures)}</div>'


def captioned(figure: str, text: str) -> str:
    """A plot among plots, with its caption."""
    return f'<div class="captioned">{figure}{paragraph(text)}</div>'


def line_plot(title: str, series: Mapping[str, Sequence[tuple[int, float | None]]], colours: Mapping[str, str]) -> str:
    """One line per name, over counts on a logarithmic axis; a value that is None is not drawn."""
    counts = sorted({count for points in series.values() for count, _ in points})
    highest = max((value for points in series.values() for _, value in points if value is not None), default=0.0)
    top = _round_up(highest)
    low, high = log10(counts[0]), log10(counts[-1])

    def x(count: int) -> float:
        share = 0.5 if high == low else (log10(count) - low) / (high - low)
        return _LEFT + 12 + share * (_WIDTH - _LEFT - 30)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - 12)

    parts = [_axis(y(tick), _short_number(tick)) for tick in (0.0, top / 2, top)]
    parts += [f'<text x="{x(count):.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{count:,}</text>' for count in counts]
    for name, points in series.items():
        drawn = [(x(count), y(value), count, value) for count, value in points if value is not None]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py, _, _ in drawn)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{colours[name]}">'
            f"<title>{escape(name)}, {count}: {_number(value)}</title></circle>"
            for px, py, count, value in drawn
        ]
    return _figure(title, _WIDTH, _HEIGHT, parts)


def time_plot(
    title: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    colours: Sequence[str],
    marks: Sequence[float],
    width: int = _WIDTH,
) -> str:
    """One line per name over seconds, in the colours' order; marks are moments."""
    points = [point for line in lines.values() for point in line]
    end, top = max((at for at, _ in points), default=1.0) or 1.0, _round_up(max((v for _, v in points), default=0.0))

    def x(at: float) -> float:
        return _LEFT + 4 + at / end * (width - _LEFT - 12)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - 12)

    parts = [_axis(y(tick), _short_number(tick), width) for tick in (0.0, top / 2, top)]
    parts += [
        f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="8" y2="{_HEIGHT - _BOTTOM}" stroke="#57606a" '
        'stroke-dasharray="3 3"/>'
        for at in marks
        if at <= end
    ]
    parts.append(f'<text x="{width - 4}" y="{_HEIGHT - 6}" text-anchor="end">{end:.0f} s</text>')
    for (name, line), colour in zip(lines.items(), colours, strict=False):
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in line)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"><title>{escape(name)}</title>'
            "</polyline>"
        )
    return _figure(title, width, _HEIGHT, parts, colour_key(list(lines), colours) if len(lines) > 1 else "")


def strips(
    title: str,
    rows: Mapping[str, Sequence[tuple[float, float, str]]],
    marks: Sequence[tuple[float, str]],
    end: float,
    width: int = 1080,
) -> str:
    """One strip per name over time: coloured from one time to another. Marks are named above."""
    left, height = 76, 11
    scale = (width - left) / max(end, 0.001)
    bottom = 20 + height * len(rows)
    parts = []
    for number, (name, bars) in enumerate(rows.items()):
        top = 20 + number * height
        parts.append(f'<text x="{left - 6}" y="{top + 9}" text-anchor="end">{escape(name)}</text>')
        parts += [
            f'<rect x="{left + from_s * scale:.1f}" y="{top}" width="{max(0.4, (to_s - from_s) * scale):.1f}" '
            f'height="{height - 1}" fill="{colour}"/>'
            for from_s, to_s, colour in bars
        ]
    for at, name in marks:
        at_x = left + at * scale
        parts.append(f'<line x1="{at_x:.1f}" x2="{at_x:.1f}" y1="14" y2="{bottom}" stroke="#57606a"/>')
        parts.append(f'<text x="{at_x + 3:.1f}" y="12">{escape(name)}</text>')
    parts.append(f'<text x="{width}" y="{bottom + 14}" text-anchor="end">{end:.0f} s</text>')
    return _figure(title, width, bottom + 18, parts)


def _figure(title: str, width: int, height: int, parts: Sequence[str], key: str = "") -> str:
    drawing = f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{key}{drawing}</figure>"


def _axis(y: float, label: str, width: int = _WIDTH) -> str:
    rule = f'<line x1="{_LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>'
    return rule + f'<text x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'


def _round_up(value: float) -> float:
    """Round up to 1, 2, 5 or 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** int(log10(value) - (1 if value < 1 else 0))
    return next(step * power for step in (1, 2, 5, 10, 20) if step * power >= value)


def _short_number(value: float) -> str:
    return f"{_number(value / 1000)}k" if value >= 10_000 else _number(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
