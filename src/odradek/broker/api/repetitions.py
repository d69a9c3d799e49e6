"""A limit for requests that name the same thing again and again.

Apache Kafka answers a group that DescribeGroups names twice twice, and so each API whose answer is a list of what the
request listed. A description may be far larger than a name, and a frame has room for a million names, so that the
answer is bounded here: a name is answered as often as it is named, but at most `ANSWERS_MAX` times.
"""

from collections import Counter
from collections.abc import Hashable

ANSWERS_MAX = 10


class Repetitions:
    """Counts how often one request named each thing."""

    def __init__(self) -> None:
        self._times: Counter[Hashable] = Counter()

    def may_answer(self, name: Hashable) -> bool:
        """Count one more mention of the name, and return whether it is answered."""
        self._times[name] += 1
        return self._times[name] <= ANSWERS_MAX
