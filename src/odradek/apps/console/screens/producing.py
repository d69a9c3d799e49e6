"""Producing a record from the console."""

from random import randrange

from odradek.apps.console.console import Console
from odradek.apps.console.dialogs import ChangeDialog, fault_of, number_between
from odradek.apps.console.page import perform
from odradek.apps.console.views.records import parse_headers, parse_value
from odradek.client.partitioner import partition_for_key
from odradek.client.record_sender import NewRecord, RecordSender


async def produce(console: Console, topic: str) -> bool:
    dialog = ChangeDialog("Produce a record", "Produce")
    state = console.cluster.want().value
    known = state.topics if state else {}
    name = dialog.field("Topic", topic, check=lambda text: None if text in known else "there is no such topic")

    def check_partition(text: str) -> str | None:
        count = len(known[name.value].partitions) if name.value in known else 1
        return None if not text else number_between(0, count - 1, "the partition")(text)

    partition = dialog.field("Partition (empty: by key, or random)", check=check_partition)
    key = dialog.field("Key (empty: none)")
    kind = dialog.choice("The value is", {"text": "text", "json": "JSON", "hex": "hex", "null": "a tombstone"}, "text")
    value = dialog.field("Value", area=True, check=fault_of(lambda text: parse_value(text, kind.value)))
    headers = dialog.field("Headers, one on a line: name: value", area=True, check=fault_of(parse_headers))

    def sentence() -> str:
        where = (
            f"partition {partition.value}"
            if partition.value
            else "the partition of its key"
            if key.value
            else "a random partition"
        )
        return f"Writes one record to topic {name.value or '…'}, {where}, and waits until all in-sync replicas have it."

    dialog.says(sentence)

    async def work() -> str:
        count = len(known[name.value].partitions)
        key_bytes = key.value.encode() if key.value else None
        number = (
            int(partition.value)
            if partition.value
            else partition_for_key(key_bytes, count)
            if key_bytes
            else randrange(count)
        )
        record = NewRecord(key_bytes, parse_value(value.value, kind.value), parse_headers(headers.value))
        wanted = name.value
        offsets = await perform(
            console,
            f"produce a record to {wanted}-{number}",
            lambda client: RecordSender(client, wanted).send({number: [record]}),
        )
        return f"Written to {wanted}-{number} at offset {offsets[number]:,}."

    return await dialog.run(work)
