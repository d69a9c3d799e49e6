"""`key=value` words and files of them, as Kafka's tools take settings of clients, readers and formatters."""

from pathlib import Path

from odradek.apps.cli.kafka.options import Given, WrongOptions
from odradek.apps.cli.kafka.tool import ToolError
from odradek.base.config.properties import parse_properties


def given_properties(given: Given, word_option: str, file_option: str | None = None) -> dict[str, str]:
    """Return the properties of the file, overridden by the ones on the command line."""
    properties: dict[str, str] = {}
    if file_option is not None and given.has(file_option):
        path = Path(given.text(file_option))
        try:
            properties |= parse_properties(path.read_text())
        except OSError as error:
            raise ToolError(f"{path} can't be read: {error.strerror}") from None
    for word in given.values(word_option):
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise WrongOptions(f"Invalid command line properties: {word}")
        properties[key] = value
    return properties


def is_true(properties: dict[str, str], key: str, default: bool = False) -> bool:
    return properties[key].strip().lower() == "true" if key in properties else default
