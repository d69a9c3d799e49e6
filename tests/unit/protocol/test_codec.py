"""That the generated code is what it is meant to be: straight lines, one call per run of fixed-size fields."""

from odradek.protocol.codec import decoder_source, encoder_source
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
