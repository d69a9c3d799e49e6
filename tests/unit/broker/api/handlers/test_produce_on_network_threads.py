"""Which Produce requests a network thread serves itself."""

import pytest

from odradek.broker.api.handlers.produce import takes_long
from odradek.protocol.batch_survey import BatchSurvey

KB = 1 << 10


@pytest.mark.parametrize(
    ("records", "compressed", "older", "frame_bytes", "is_long"),
    [
        (372, 0, 0, 390 * KB, False),
        (20_000, 0, 0, 4 << 20, False),
        (20_001, 0, 0, 90 * KB, True),
        (372, 6, 0, 390 * KB, False),  # one for each of six partitions, as a producer sends them
        (372, 32, 0, 512 * KB, False),
        (372, 33, 0, 90 * KB, True),
        (372, 5, 0, 513 * KB, True),
        (372, 4, 0, 4 << 20, False),  # as few as always were: the budget ends the work
        (1, 0, 1, KB, True),
    ],
)
def test_what_could_hold_up_other_clients(
    records: int, compressed: int, older: int, frame_bytes: int, is_long: bool
) -> None:
    assert takes_long(BatchSurvey(records, compressed, 0, older), frame_bytes) is is_long
