"""Options of a query (`.option(...)`), read once and checked: those of Spark's Kafka connector."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from odradek.apps.pipeline.source.connection import Settings, client_settings
from odradek.apps.pipeline.source.errors import OptionError
from odradek.apps.pipeline.source.offsets import Offsets, parse_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

_PLAIN_SETTINGS: Final = frozenset({"bootstrap.servers", "isolation.level", "log_level", "security.protocol"})
_STRATEGIES: Final = ("subscribe", "subscribePattern", "assign")
_DEFAULT_POLL_TIMEOUT_MS: Final = 120_000
_DEFAULT_MAX_TRIGGER_DELAY_MS: Final = 15 * 60_000
_BATCH_ONLY: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|d)?", re.IGNORECASE)
_UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Subscription:
    """Subscription of a query: the named topics, the topics that match a pattern, or exactly these partitions. One of
    the three is set.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Boundary:
    """Requested end of the range: offsets (or EARLIEST, LATEST) or times, per partition or for all."""

    option: str
    everywhere: int | None = None
    by_partition: Offsets | None = None
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    settings: Settings = field(repr=False)
    subscription: Subscription
    start: Boundary
    end: Boundary
    no_record_that_late_is_latest: bool
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None
    max_offsets_of_first_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    min_records_per_partition: int | None
    include_headers: bool
    poll_timeout_ms: int

    @property
    def read_committed(self) -> bool:
        return bool(self.settings.get("isolation.level") == "read_committed")

    @property
    def bootstrap(self) -> str:
        return str(self.settings["bootstrap.servers"])

    @property
    def is_plain(self) -> bool:
        """True if a plain client is enough: no security, no committed reads, no other setting."""
        protocol = str(self.settings.get("security.protocol", "plaintext"))
        return self.settings.keys() <= _PLAIN_SETTINGS and protocol.lower() == "plaintext" and not self.read_committed


@dataclass(frozen=True, slots=True)
class WriteOptions:
    settings: Settings = field(repr=False)
    topic: str | None
    exactly_once: bool = False
    is_plain: bool = True  # no kafka.* option but the brokers


Options: TypeAlias = Mapping[str, str]


def read_options(options: Options, *, streaming: bool) -> ReadOptions:
    """`options` as Spark hands them over: a mapping whose names have no case."""
    if streaming:
        for name in _BATCH_ONLY:
            if name in options:
                raise OptionError(f'The option "{name}" is not valid in streaming queries')
    strategy = options.get("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise OptionError(f'startingOffsetsByTimestampStrategy is "error" or "latest", not {strategy!r}')
    # isolation.level is the consumer's: the Java client, and so the connector, reads uncommitted by default
    return ReadOptions(
        settings={"isolation.level": "read_uncommitted"} | client_settings(_lower(options)),
        subscription=_subscription(options),
        start=_start(options, streaming=streaming),
        end=_end(options),
        no_record_that_late_is_latest=strategy == "latest",
        fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
        max_offsets_per_trigger=_positive(options, "maxOffsetsPerTrigger"),
        max_offsets_of_first_trigger=_positive(options, "maxOffsetsOfFirstTrigger"),
        min_offsets_per_trigger=_positive(options, "minOffsetsPerTrigger"),
        max_trigger_delay_ms=_duration_ms(options, "maxTriggerDelay", _DEFAULT_MAX_TRIGGER_DELAY_MS),
        min_partitions=_positive(options, "minPartitions"),
        max_records_per_partition=_positive(options, "maxRecordsPerPartition"),
        min_records_per_partition=_positive(options, "minRecordsPerPartition"),
        include_headers=_flag(options, "includeHeaders", default=False),
        poll_timeout_ms=_positive(options, "kafkaConsumer.pollTimeoutMs") or _DEFAULT_POLL_TIMEOUT_MS,
    )


def write_options(options: Options) -> WriteOptions:
    settings = client_settings(_lower(options))
    is_plain = settings.keys() <= _PLAIN_SETTINGS and str(settings.get("security.protocol", "plaintext")) == "plaintext"
    settings.setdefault("acks", "all")
    settings.setdefault("enable.idempotence", "true" if settings["acks"] in ("all", "-1") else "false")
    # where Java's producer would put the key
    settings.setdefault("partitioner", "murmur2_random")
    exactly_once = _flag(options, "exactlyOnce", default=False)
    return WriteOptions(settings, options.get("topic") or None, exactly_once, is_plain)


def includes_headers(options: Options) -> bool:
    return _flag(options, "includeHeaders", default=False)


def _subscription(options: Options) -> Subscription:
    given = [name for name in _STRATEGIES if name in options]
    if len(given) != 1:
        said = "and ".join(given) + " were given" if given else "none was"
        raise OptionError(f"Exactly one of subscribe, subscribePattern and assign says what to read; {said}")
    name, text = given[0], options[given[0]].strip()
    if not text:
        raise OptionError(f"{name} is empty")
    if name == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
        if not topics:
            raise OptionError("subscribe names no topic")
        return Subscription(topics=topics)
    if name == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"subscribePattern {text!r} is not a regular expression: {error}") from None
        return Subscription(pattern=text)
    return Subscription(partitions=_assigned(text))


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    shape = 'JSON like {"topicA": [0, 1], "topicB": [2]}'
    try:
        document = json.loads(text)
        found = tuple(TopicPartition(topic, int(p)) for topic, partitions in document.items() for p in partitions)
    except (ValueError, TypeError, AttributeError):
        raise OptionError(f"assign takes {shape}, not {text!r}") from None
    if not found:
        raise OptionError(f"assign names no partition; it takes {shape}")
    return found


def _start(options: Options, *, streaming: bool) -> Boundary:
    default = LATEST if streaming else EARLIEST
    start = _boundary(options, "starting", default)
    if (
        not streaming
        and (start.everywhere == LATEST or LATEST in (start.by_partition or {}).values())
        and not start.is_time
    ):
        raise OptionError("startingOffsets can't be latest in a batch query: it would read nothing")
    return start


def _end(options: Options) -> Boundary:
    end = _boundary(options, "ending", LATEST)
    if not end.is_time and (end.everywhere == EARLIEST or EARLIEST in (end.by_partition or {}).values()):
        raise OptionError("endingOffsets can't be earliest: the query would read nothing")
    return end


def _boundary(options: Options, which: str, default: int) -> Boundary:
    """A time for all goes before times per partition, and those before offsets, as in the connector."""
    if (name := f"{which}Timestamp") in options:
        return Boundary(name, everywhere=_time_ms(name, options[name]), is_time=True)
    if (name := f"{which}OffsetsByTimestamp") in options:
        return Boundary(name, by_partition=parse_offsets(name, options[name]), is_time=True)
    name = f"{which}Offsets"
    text = options.get(name, "").strip()
    word = text.lower()
    if not text:
        return Boundary(name, everywhere=default)
    if word in ("earliest", "latest"):
        return Boundary(name, everywhere=EARLIEST if word == "earliest" else LATEST)
    offsets = parse_offsets(name, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise OptionError(f"{name}: an offset is at least 0, or -2 for earliest, or -1 for latest")
    return Boundary(name, by_partition=offsets)


def _time_ms(name: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise OptionError(f"{name} takes milliseconds since 1970, not {text!r}")
    return int(text)


def _positive(options: Options, name: str) -> int | None:
    if name not in options:
        return None
    text = options[name].strip()
    if not text.isdecimal() or int(text) == 0:
        raise OptionError(f"{name} takes a whole number above 0, not {text!r}")
    return int(text)


def _duration_ms(options: Options, name: str, default: int) -> int:
    if name not in options:
        return default
    found = _DURATION.fullmatch(options[name].strip())
    if found is None:
        raise OptionError(f"{name} takes a time such as 15m or 30s, not {options[name]!r}")
    return int(found[1]) * _UNIT_MS[(found[2] or "ms").lower()]


def _flag(options: Options, name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name} is true or false, not {text!r}")
    return text == "true"


def _lower(options: Options) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
