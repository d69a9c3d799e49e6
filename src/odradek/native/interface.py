"""Functions of the compiled inner loop (`inner_loop.c`).

A function answers for bytes that are sound and usual. Otherwise it answers None, or -1, and its caller goes on in
Python: so refusals, their words and every rare case have one home. The Python code that a function stands for is its
twin: the answer of the function is the answer of the twin, and costs as many steps of a budget.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

Buffer: TypeAlias = bytes | bytearray | memoryview
T = TypeVar("T", bound=tuple[object, ...])


class InnerLoop(Protocol):
    INTERFACE: int

    def new_buffer(self, size: int, /) -> bytearray:
        """A buffer whose content is undefined. For `buffers`."""

    def keep_freed_memory(self, kept_bytes: int, mapped_bytes: int, /) -> bool:
        """Let the allocator of the C library keep so many freed bytes at the end of its memory, and map only blocks of
        at least `mapped_bytes` by themselves; False where it has no such settings."""

    def checksum(self, data: Buffer, start: int, end: int, /) -> int:
        """CRC-32C of these bytes; IndexError when they aren't there."""

    def read_header(self, header_type: type[T], data: Buffer, pos: int, /) -> T | None:
        """`record_batch.read_header`: the header at `pos` if it is whole and its length possible."""

    def sound_batches(self, header_type: type[T], data: Buffer, pos: int, /) -> list[T]:
        """Headers of the batches from `pos` on: up to the end, or to the first that is cut, old or corrupt."""

    def check_batch(
        self,
        types: tuple[type[T], type[tuple[Any, ...]], type[tuple[Any, ...]]],
        rules: object,
        limits: tuple[int, int, bool],
        data: Buffer,
        now_ms: int,
        steps_left: int,
        /,
    ) -> tuple[T, int] | None:
        """`validation.check_records` for one batch of a producer that is kept as it is: the CheckedRecords, and the
        steps to pay. -1 for a compressed one: its header and checksum are checked, its records are not.

        Types are CheckedRecords, CheckedBatch and BatchHeader; limits are `BatchRules.limits`.
        """

    def place_batch(
        self, info_type: type[T], data: memoryview, base_offset: int, leader_epoch: int, position: int, /
    ) -> T | None:
        """`record_batch.assign` and `validation.batch_info`: patches the batch that begins `data`."""

    def place_next(
        self,
        types: tuple[type[T], Any, Any, Any, Any, Any],
        batches: Sequence[tuple[Any, ...]],
        entries: dict[int, Any],
        base_offset: int,
        leader_epoch: int,
        kept: int,
        /,
    ) -> T | None:
        """`placement.place` for one batch that keeps its timestamp and is its producer's next: a Placed. With None
        nothing is patched. `types` is `placement.PLACED_TYPES`."""

    def fetched_run(
        self, types: tuple[type[T], type[tuple[Any, ...]]], data: Buffer, next_offset: int, segment_bytes: int, /
    ) -> T | None:
        """`replicated.split_into_runs` for up to a megabyte of batches that are one run without a gap: the Run. Types
        are Run and BatchInfo."""

    def count_records(self, data: Buffer, expected: int, /) -> int:
        """`record_walk.count_records`: the steps to charge, or -1."""

    def walk_records(self, data: Buffer, expected: int, /) -> Sequence[int] | None:
        """`record_walk.walk_records`: least and largest timestamp delta, records without key, steps to charge."""

    def record_spans(
        self, data: Buffer, count: int, /
    ) -> list[tuple[int, int, int, int, int, bytes | None, bool]] | None:
        """`batch_filter.spans`, all at once; None also for more than a megabyte of records."""

    def records(
        self, record_type: type[T], data: Buffer, count: int, base_offset: int, timestamp: int, is_append_time: int, /
    ) -> list[T] | None:
        """`records.read_plain_records`, all at once; None also for more than a megabyte of records.

        `timestamp` is what those of the records count from or, with `is_append_time`, that of all.
        """

    def make_decoder(self, layout: tuple[object, ...], /) -> object:
        """A decoder of one message at one version; `protocol.compiled_decoder` has the layouts. Or an encoder;
        `protocol.compiled_encoder` has those."""

    def decode(
        self, decoder: object, uuid_of: Callable[[bytes], object], data: memoryview, pos: int, steps: int, /
    ) -> tuple[Any, int] | None:
        """The function that `protocol.decoder_writer` writes: the message, and the position after it."""

    def encode(
        self, encoder: object, types: tuple[type, type, type], message: object, out: bytearray, splices: list[Any], /
    ) -> bool:
        """The function that `protocol.encoder_writer` writes, or False, with nothing appended. Types are UUID,
        FileSlice and SharedList."""

    def request_header(self, header_type: type[T], header_versions: Buffer, frame: memoryview, /) -> T | None:
        """`framing.parse_request_header`, of an API and version that are in the table: at key * 32 + version its header
        version, 0 for none."""

    def survey_batches(self, topics: list[Any], /) -> tuple[int, int, int] | None:
        """Numbers of records, compressed batches and transactional batches of a Produce; None unless all batches have
        magic 2. For `protocol.batch_survey`."""

    def flat_batches(
        self, partition_type: type[T], topics: list[Any], internal: frozenset[str], /
    ) -> list[tuple[T, memoryview]] | None:
        """Partitions and records of a Produce in order; None where a topic is internal or records are absent."""

    def produce_response(
        self, topics: list[Any], outcomes: list[Any], result_type: type[T], correlation_id: int, version: int, /
    ) -> bytes | None:
        """The frame of a ProduceResponse for batches that were all written: each outcome is an AppendResult."""

    def fetch_response(
        self,
        outcomes: list[Any],
        records: list[bytes],
        session_id: int,
        correlation_id: int,
        version: int,
        is_committed: bool,
        /,
    ) -> bytes | None:
        """The frame of a FetchResponse with these FetchOutcomes and the records of each, from version 12 on; None where
        a partition has an error, a divergence, a better replica or aborted transactions. `is_committed`: the fetcher
        is told of aborted transactions."""

    def find_records(
        self,
        data: Buffer,
        ends: Any,
        counts: Any,
        base_offsets: Any,
        base_times: Any,
        append_times: Any,
        /,
        *found: Any,
    ) -> int:
        """`record_decoder.find_records` of pipelines, over the same arrays."""

    def find_headers(self, data: Buffer, headers_at: Any, header_count: Any, /, *found: Any) -> bool:
        """`record_decoder.find_headers`."""

    def gather_pieces(self, data: Buffer, at: Any, size: Any, out: Any, out_offsets: Any, /) -> bool:
        """`record_decoder.gather_pieces`."""
