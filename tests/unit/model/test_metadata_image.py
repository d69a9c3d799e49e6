"""The image that an UpdateMetadata request makes of the one before."""

from uuid import UUID

from odradek.model.metadata_image import MetadataImage, PartitionImage, TopicUpdate
from odradek.model.topology import ZERO_UUID, Broker, TopicPartition

FIRST, SECOND = UUID(int=1), UUID(int=2)
BROKERS = {0: Broker(0, ()), 1: Broker(1, ())}


def led_by(leader: int) -> PartitionImage:
    return PartitionImage(leader, 0, (0, 1), (0, 1))


def image_of(*news: TopicUpdate) -> MetadataImage:
    return MetadataImage(cluster_id="c").updated(0, BROKERS, news)


def test_an_update_changes_the_partitions_that_it_names_and_no_others():
    before = image_of(TopicUpdate("orders", FIRST, {0: led_by(0), 1: led_by(1)}))
    after = before.updated(1, {1: Broker(1, ())}, [TopicUpdate("orders", FIRST, {0: led_by(1)})])
    assert (after.cluster_id, after.controller_id, list(after.brokers)) == ("c", 1, [1])
    assert [after.topics["orders"].partitions[p].leader for p in (0, 1)] == [1, 1]
    assert before.topics["orders"].partitions[0].leader == 0, "an image never changes"


def test_a_topic_goes_with_the_last_of_its_partitions():
    before = image_of(TopicUpdate("orders", FIRST, {0: led_by(0), 1: led_by(1)}))
    halfway = before.updated(0, BROKERS, [TopicUpdate("orders", FIRST, {0: None})])
    assert list(halfway.topics["orders"].partitions) == [1]
    gone = halfway.updated(0, BROKERS, [TopicUpdate("orders", FIRST, {1: None})])
    assert (gone.topics, gone.topic_names) == ({}, {})
    assert gone.partition(TopicPartition("orders", 1)) is None


def test_a_topic_that_was_deleted_and_created_anew_keeps_nothing():
    before = image_of(TopicUpdate("orders", FIRST, {0: led_by(0), 1: led_by(1)}))
    after = before.updated(0, BROKERS, [TopicUpdate("orders", SECOND, {0: led_by(1)})])
    assert list(after.topics["orders"].partitions) == [0]
    assert after.topic_names == {SECOND: "orders"}


def test_an_update_from_before_topic_ids_forgets_no_id():
    before = image_of(TopicUpdate("orders", FIRST, {0: led_by(0)}))
    after = before.updated(0, BROKERS, [TopicUpdate("orders", ZERO_UUID, {0: led_by(1)})])
    assert after.topics["orders"].id == FIRST
    assert after.topic_names == {FIRST: "orders"}


def test_a_full_update_leaves_nothing_that_it_does_not_name():
    before = image_of(TopicUpdate("orders", FIRST, {0: led_by(0)}), TopicUpdate("gone", SECOND, {0: led_by(0)}))
    after = before.updated(0, BROKERS, [TopicUpdate("orders", FIRST, {0: led_by(1)})], is_full=True)
    assert list(after.topics) == ["orders"]
    assert after.topic_names == {FIRST: "orders"}


def test_topics_that_were_deleted_by_an_update():
    """Two requests may have become one: the topic has its name again, and is another one."""
    before = image_of(*(TopicUpdate(name, UUID(int=id), {0: led_by(0)}) for id, name in enumerate("abc", start=1)))
    news = [
        TopicUpdate("a", UUID(int=1), {0: None}),
        TopicUpdate("b", UUID(int=2), {0: None}),
        TopicUpdate("b", UUID(int=9), {0: led_by(1)}),
        TopicUpdate("c", ZERO_UUID, {0: led_by(1)}),
        TopicUpdate("d", UUID(int=8), {0: led_by(1)}),
    ]
    assert before.updated(0, BROKERS, news).deleted_since(before) == ["a", "b"]
    assert before.deleted_since(before) == []
