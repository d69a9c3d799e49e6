"""Tables as plain text: columns side by side, numbers to the right, words to the left, a rule under the head."""

from collections.abc import Sequence


def text_table(headings: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]], title: str = "") -> str:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    form = "   ".join(f"{{:{'>' if right else '<'}{width}}}" for width, right in zip(widths, numeric, strict=True))
    lines = [*([title] if title else []), form.format(*headings), "─" * (sum(widths) + 3 * (len(widths) - 1))]
    lines += [form.format(*row) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
