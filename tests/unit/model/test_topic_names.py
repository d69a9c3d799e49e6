import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topic_names import check_topic_name, collides


@pytest.mark.parametrize("name", ["a", "Orders-2.x_y", "x" * 249, "...", "-"])
def test_names_that_are_fine(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "a\0", "ü", "x" * 250, "a\n"])
def test_names_that_could_leave_their_directory_or_break_a_label(name: str) -> None:
    with pytest.raises(KafkaError, match="Topic name is invalid") as refused:
        check_topic_name(name)
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_dot_and_underscore_are_one_in_a_metric() -> None:
    assert collides("a.b", "a_b")
    assert not collides("a.b", "a.b")
    assert not collides("a.b", "a-b")
