"""`NAME=VALUE` words of a command line."""

from collections.abc import Sequence


def parse_name_value_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Parse `NAME=VALUE` arguments into a dictionary. Raises ValueError with an argument of another form."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"'{pair}' is not of the form NAME=VALUE")
        values[name.strip()] = value.strip()
    return values
