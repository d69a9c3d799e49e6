"""Tables as text: numbers to the right, words to the left, a rule under the head."""

from collections.abc import Sequence


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    """The first `words` columns are words."""
    columns = list(zip(*([head, *rows]), strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]

    def line(cells: Sequence[str]) -> str:
        shown = [
            cell.ljust(width) if number < words else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(shown).rstrip()

    return "\n".join([line(head), "  ".join("─" * width for width in widths), *(line(row) for row in rows)])
