"""The budget of a produce request: the number of steps that the checks of all its records may take.

A batch of a kilobyte may unfold into megabytes, and a megabyte may hold a hundred thousand records; a request has room
for many such batches. So every check pays before it begins, in the steps of `protocol.decoding_steps` (about 20 ns).
A thread that serves other connections gives a small budget, and hands the request on when it is spent (`TakesLong`). A
handler thread gives all there is, and refuses the batches for which nothing is left: the first one as too large, which
makes producers split it, and those behind it with an error upon which producers send them again.
"""

from typing import Final

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.compression import Codec
from odradek.protocol.decoding_steps import STEPS_MAX
from odradek.protocol.record_batch import CODEC_MASK, BatchHeader
from odradek.protocol.records import Buffer, plain_view

CHECK_STEPS_MAX: Final = STEPS_MAX
"""Four million records with nothing in them, or a hundred megabytes that were compressed by gzip."""
QUICK_CHECK_STEPS_MAX: Final = 600_000

TOPIC_STEPS: Final = 55
BATCH_STEPS: Final = 500
LENGTH_STEPS: Final = 5
"""Cost of a record whose length is checked."""
FIELDS_STEPS: Final = 30
"""Cost of a record whose fields are all checked."""
DECODING_STEPS: Final = 80
"""Cost of a record that becomes an object."""

_DECOMPRESSION_STEPS: Final[dict[int, tuple[int, int]]] = {
    Codec.NONE: (1, 1),
    Codec.GZIP: (4, 3),
    Codec.SNAPPY: (4, 1),
    Codec.LZ4: (2, 2),
    Codec.ZSTD: (12, 2),
}
"""Costs of 16 compressed bytes, and of 16 plain ones. The first matter where frames and blocks are small."""
_UNKNOWN_CODEC: Final = (0, 1)
_COMPRESSION_STEPS: Final[dict[Codec, int]] = {
    Codec.NONE: 0,
    Codec.GZIP: 80,
    Codec.SNAPPY: 2,
    Codec.LZ4: 2,
    Codec.ZSTD: 5,
}
"""Cost of 16 bytes of the worst input of each codec, as hard as is usual."""
_HARD_COMPRESSION_STEPS: Final[dict[Codec, tuple[tuple[int, int], ...]]] = {
    Codec.GZIP: ((6, 80), (9, 100)),
    Codec.LZ4: ((2, 2), (17, 20)),
    Codec.ZSTD: ((3, 5), (9, 30), (22, 350)),
}
"""The same up to each level, of text. The worst input of the hardest levels takes many times as long: who sets such a
level for a topic has to trust its producers, or batches of the usual size would be refused."""


class TakesLong(Exception):
    """Checking would take longer than this thread may; nothing has been written."""


class CheckBudget:
    """Steps left for one request."""

    __slots__ = ("_batches", "_is_quick", "left")

    def __init__(self, *, is_quick: bool, topics: int = 0) -> None:
        """`topics` are those of the request: decoding them has cost something already."""
        self.left = (QUICK_CHECK_STEPS_MAX if is_quick else CHECK_STEPS_MAX) - topics * TOPIC_STEPS
        self._is_quick = is_quick
        self._batches = 0

    def begin_batch(self, steps: int = 0) -> None:
        """Charge a further batch, and the steps that its records take, where they are known."""
        self._batches += 1
        self.left -= BATCH_STEPS + steps
        if self.left < 0:
            raise self._spent()

    def charge(self, steps: int) -> None:
        """Raises TakesLong, or KafkaError, when so many aren't left."""
        self.left -= steps
        if self.left < 0:
            raise self._spent()

    def plain_payload(self, batch: memoryview, header: BatchHeader, *, max_decompressed: int) -> Buffer:
        """The batch's records, decompressed and paid for; they may be a view over the batch."""
        of_compressed, of_plain = _DECOMPRESSION_STEPS.get(header.attributes & CODEC_MASK, _UNKNOWN_CODEC)
        self.charge(len(batch) * of_compressed // 16)
        affordable = self.left * 16 // of_plain
        limit = min(affordable, max_decompressed)
        try:
            data = plain_view(batch, 0, header, max_decompressed=limit, charge=self.charge)
        except KafkaError as error:
            if error.code is ErrorCode.MESSAGE_TOO_LARGE and affordable < max_decompressed:
                self.left = 0
                raise self._spent() from None
            self.charge(limit * of_plain // 16)  # the fault may be in the last byte
            raise
        self.charge(len(data) * of_plain // 16)
        return data

    def charge_compression(self, codec: Codec, size: int, level: int | None = None) -> None:
        steps = _COMPRESSION_STEPS[codec]
        if level is not None:
            steps = next(cost for up_to, cost in _HARD_COMPRESSION_STEPS[codec] if level <= up_to)
        self.charge(size * steps // 16)

    def _spent(self) -> Exception:
        if self._is_quick:
            return TakesLong()
        if self._batches == 1:
            return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "The record batch takes too long to check")
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The request has more records than can be checked at once")


class _Unbounded(CheckBudget):
    """Budget of records that this broker itself has made."""

    def begin_batch(self, steps: int = 0) -> None:
        pass

    def charge(self, steps: int) -> None:
        pass


UNBOUNDED: Final = _Unbounded(is_quick=False)
