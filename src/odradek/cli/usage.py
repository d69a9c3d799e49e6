"""Wrong command lines and right ones: the error for the first, the examples that `--help` ends with for the second."""

import typer


class WrongUsage(typer.BadParameter):
    """A command line that can't be meant: exit code 2, and its message alone, without typer's preamble."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(f"{option}: {message}" if option else message)

    def format_message(self) -> str:
        return self.message


def examples(*lines: str) -> str:
    """For a command's epilog; the empty lines keep typer from joining them."""
    return "\n\n".join(["Examples:", *lines])
