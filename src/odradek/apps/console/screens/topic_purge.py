"""Deleting records of a topic: all of them, or those before an offset or a time."""

from odradek.apps.console.console import Console
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.fields import WrongInput, meaning, whole_number
from odradek.apps.console.page import perform
from odradek.apps.console.views.records import parse_when
from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_deletion import HIGH_WATERMARK, delete_records
from odradek.model.topology import TopicPartition

_UNTIL = {"all": "all records", "time": "records before a time", "offset": "records before an offset"}


async def purge(console: Console, topic: str) -> bool:
    detail = console.topic(topic).want().value
    numbers = [p.partition for p in detail.topic.partitions] if detail else []
    dialog = ChangeDialog("Delete records", "Delete records", danger=True)
    partition = dialog.choice("Of", {"": "all partitions", **{str(n): f"partition {n}" for n in numbers[:500]}}, "")
    until = dialog.choice("Which", _UNTIL, "all")
    at = dialog.field("Offset, or time (15m ago, 2026-01-31 14:00)", full=True)
    dialog.field(
        f"Type the topic's name to go on: {topic}",
        check=lambda text: None if text == topic else "that is not its name",
        full=True,
    )

    def sentence() -> str:
        where = f"partition {partition.value}" if partition.value else "all partitions"
        limit = "" if until.value == "all" else f" {at.value or '…'}"
        return (
            f"Deletes {_UNTIL[until.value]}{limit} of topic {topic}, {where}: logs begin later, consumers that were "
            "before that go on from the new beginning. This can't be undone."
        )

    dialog.says(sentence)

    async def work() -> str:
        wanted = [TopicPartition(topic, n) for n in numbers if partition.value in ("", str(n))]
        now_ms = console.feeds.clock.now_ms()
        offset = time_ms = 0
        try:
            if until.value == "offset":
                offset = meaning(at, whole_number("an offset"))
            elif until.value == "time":
                time_ms = meaning(at, lambda text: parse_when(text, now_ms))
        except WrongInput as error:
            raise ValueError(str(error)) from None

        def change(client: ClusterClient) -> int:
            return _delete(client, wanted, until.value, offset, time_ms)

        what = f"delete {_UNTIL[until.value]} {at.value or ''} of topic {topic} in {len(wanted)} partitions"
        done = await perform(console, what, change)
        return f"Records of {done} partitions are deleted."

    return await dialog.run(work)


def _delete(client: ClusterClient, wanted: list[TopicPartition], until: str, offset: int, time_ms: int) -> int:
    before = dict.fromkeys(wanted, HIGH_WATERMARK if until == "all" else offset)
    if until == "time":
        found = list_offsets(client, dict.fromkeys(wanted, time_ms))
        before = {tp: HIGH_WATERMARK if (at := found[tp].offset) is None else at for tp in wanted}
    results = delete_records(client, before)
    for result in results.values():
        if isinstance(result, KafkaError):
            raise result
    return len(results)
