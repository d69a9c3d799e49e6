"""Exceptions that end a command."""


class WrongUsage(Exception):
    """Wrong usage: exit code 2. Nothing was done."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(f"{option}: {message}" if option else message)

    def see(self, command: str) -> "WrongUsage":
        """Return the error with a reference to the command's help."""
        return WrongUsage(f"{self} ({command} --help)")


class Exit(Exception):
    """The command has printed its result, and ends with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
