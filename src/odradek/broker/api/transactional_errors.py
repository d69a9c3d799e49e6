"""Mapping of transaction errors to the errors that older clients know."""

from odradek.base.errors import ErrorCode


def as_known_to(error: ErrorCode, version: int, *, fenced_since: int) -> ErrorCode:
    """Requests older than `fenced_since` say INVALID_PRODUCER_EPOCH for a producer that was fenced."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
