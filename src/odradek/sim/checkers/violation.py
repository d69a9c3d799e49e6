"""The error of every checker."""


class Violation(AssertionError):
    """An invariant is broken."""
