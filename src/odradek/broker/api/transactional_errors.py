"""Mapping of transaction errors to the errors that older clients know."""

from odradek.base.errors import ErrorCode


def as_known_to(error: ErrorCode, version: int, *, fenced_since: int) -> ErrorCode:
    """Map an error: requests older than `fenced_since` get INVALID_PRODUCER_EPOCH for a fenced producer."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
