"""Options of a query, and those that are refused."""

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from odradek.apps.pipeline.source.errors import OptionError
from odradek.apps.pipeline.source.options import ReadOptions, read_options, write_options
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST


def read(streaming: bool = False, **options: str) -> ReadOptions:
    given = {
        "kafka.bootstrap.servers": "here:9092",
        **{name.replace("__", "."): text for name, text in options.items()},
    }
    return read_options(CaseInsensitiveDict(given), streaming=streaming)


def test_defaults_are_the_connectors() -> None:
    batch, stream = read(subscribe="a, b"), read(True, subscribe="a")
    assert (batch.start.everywhere, batch.end.everywhere, stream.start.everywhere) == (EARLIEST, LATEST, LATEST)
    assert batch.subscription.topics == ("a", "b")
    assert batch.fail_on_data_loss
    assert not batch.read_committed
    assert batch.settings["bootstrap.servers"] == "here:9092"


def test_names_have_no_case() -> None:
    options = read(
        SUBSCRIBE="a",
        STARTINGOFFSETS='{"a": {"0": -2}}',
        failondataloss="FALSE",
        kafka__Isolation__Level="read_committed",
    )
    assert options.start.by_partition == {TopicPartition("a", 0): EARLIEST}
    assert not options.fail_on_data_loss
    assert options.read_committed


def test_a_time_goes_before_offsets() -> None:
    options = read(
        subscribe="a", startingTimestamp="5", startingOffsetsByTimestamp='{"a": {"0": 7}}', startingOffsets="earliest"
    )
    assert (options.start.option, options.start.everywhere, options.start.is_time) == ("startingTimestamp", 5, True)


@pytest.mark.parametrize(
    ("streaming", "options", "sentence"),
    [
        (True, {"subscribe": "a", "endingOffsets": "latest"}, "not valid in streaming"),
        (False, {"subscribe": "a", "endingOffsets": "earliest"}, "can't be earliest"),
        (False, {"subscribe": "a", "startingOffsets": '{"a": {"0": -3}}'}, "at least 0"),
        (False, {"subscribe": " , "}, "names no topic"),
        (False, {"subscribePattern": "("}, "not a regular expression"),
        (False, {"assign": '{"a": 0}'}, "assign takes JSON"),
        (False, {"subscribe": "a", "failOnDataLoss": "perhaps"}, "true or false"),
        (False, {"subscribe": "a", "maxTriggerDelay": "later"}, "a time such as 15m"),
        (False, {"subscribe": "a", "startingTimestamp": "-1"}, "milliseconds since 1970"),
    ],
)
def test_what_makes_no_sense_is_refused(streaming: bool, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        read(streaming, **options)


def test_writers_put_keys_where_java_does_and_wait_for_all() -> None:
    options = write_options(CaseInsensitiveDict({"kafka.bootstrap.servers": "here:9092", "topic": "t"}))
    assert options.settings["partitioner"] == "murmur2_random"
    assert (options.settings["acks"], options.settings["enable.idempotence"]) == ("all", "true")
    hasty = write_options(CaseInsensitiveDict({"kafka.bootstrap.servers": "here:9092", "kafka.acks": "1"}))
    assert hasty.settings["enable.idempotence"] == "false"
