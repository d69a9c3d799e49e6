"""Debug lines of librdkafka in a file, and the answers in them after which it numbers its batches anew."""

import logging
import re
from collections import Counter
from pathlib import Path

DEBUG = {"debug": "eos,msg", "log_level": 7}
_OUT_OF_ORDER = re.compile(r"/(\d+): \S+ \[\d+\]: MessageSet .*encountered error: .*out of order sequence")
"""A line about a batch begins with the broker that answered: its address, and its id behind a slash."""


def debug_logger(path: Path) -> logging.Logger:
    """A logger that writes lines with their times to the file, and to nothing else."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(message)s", "%H:%M:%S"))
    logger = logging.Logger(path.stem, logging.DEBUG)
    logger.addHandler(handler)
    return logger


def out_of_order_answers(path: Path) -> Counter[int]:
    """How often each broker, by its id, refused a batch with OUT_OF_ORDER_SEQUENCE_NUMBER."""
    with path.open(errors="replace") as lines:
        return Counter(int(found[1]) for line in lines if (found := _OUT_OF_ORDER.search(line)))
