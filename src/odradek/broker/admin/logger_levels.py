"""Levels of this broker's loggers, as BROKER_LOGGER resources: described and set one by one, lost when the process
ends.
"""

from collections.abc import Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import ROOT, THRESHOLDS, get_logger, set_threshold, thresholds

log = get_logger(__name__)


def set_levels(levels: Mapping[str, str | None], *, validate_only: bool) -> None:
    """Set the level of each logger; None makes it follow the root logger. All of them or none."""
    known = thresholds()
    for name, level in levels.items():
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if level is None and name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
        if level is not None and level not in THRESHOLDS:
            message = f"{level} is not a level of a logger. Those there are: {', '.join(sorted(THRESHOLDS))}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    if validate_only:
        return
    for name, level in levels.items():
        set_threshold(name, level)
        log.info("log level set", logger=name, level=level or f"that of {ROOT}")
