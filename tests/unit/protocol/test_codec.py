"""Generated code of the codec: straight lines, one call per run of fixed-size fields."""

from uuid import UUID

from odradek.protocol.codec import decoder_source, encoder_source
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.primitives import SharedList
from odradek.protocol.schema import Message, int16, int32, int64, string


class Sample(Message, versions="0-1", flexible="1+"):
    error_code: int = int16()
    offset: int = int64()
    name: str = string()
    epoch: int = int32("1+")


def test_a_run_of_fixed_fields_and_the_length_after_it_are_read_at_once() -> None:
    source = decoder_source(Sample, 0)
    assert "(o0.error_code, o0.offset, n,) = unpack_hqh(buf, pos)" in source
    assert source.count("unpack") == 1


def test_the_count_of_no_tagged_fields_is_written_with_the_run_before_it() -> None:
    assert "out += pack_ix(o0.epoch)" in encoder_source(Sample, 1)


def test_a_version_pays_only_for_its_fields() -> None:
    assert "o0.epoch = 0" in decoder_source(Sample, 0)
    assert "pack_i" not in encoder_source(Sample, 0)


def test_arrays_that_requests_share_are_encoded_once_per_version() -> None:
    states = [UpdateMetadataTopicState(topic_name=name, topic_id=UUID(int=n)) for n, name in enumerate("abc")]
    brokers = [UpdateMetadataBroker(id=n, rack="r") for n in range(3)]
    for version in range(5, 9):
        shared, live = SharedList(states), SharedList(brokers)
        for epoch in (1, 2**40):
            plain = UpdateMetadataRequest(broker_epoch=epoch, topic_states=states, live_brokers=brokers)
            twin = UpdateMetadataRequest(broker_epoch=epoch, topic_states=shared, live_brokers=live)
            assert twin.encode(version) == plain.encode(version)
        shared[0] = UpdateMetadataTopicState(topic_name="changed too late")
        assert twin.encode(version) == plain.encode(version), "not encoded again"
