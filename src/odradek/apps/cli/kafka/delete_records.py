"""kafka-delete-records: delete the records before given offsets."""

import json
from pathlib import Path

from odradek.apps.cli.kafka.exceptions import exception_text
from odradek.apps.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, EVERY_TOOL, Given, Option, OptionTable
from odradek.apps.cli.kafka.tool import ToolError, connect
from odradek.base.errors import KafkaError
from odradek.client.record_deletion import delete_records
from odradek.model.topology import TopicPartition

TABLE = OptionTable(
    "This tool helps to delete records of the given partitions down to the specified offset.",
    BOOTSTRAP,
    Option(
        "offset-json-file",
        'the offsets, as {"partitions":[{"topic":"foo","partition":1,"offset":1}],"version":1}',
        "FILE",
    ),
    COMMAND_CONFIG,
    *EVERY_TOOL,
)


def run(given: Given) -> int:
    given.require("bootstrap-server", "offset-json-file")
    offsets = _read(Path(given.text("offset-json-file")))
    with connect(given) as client:
        print("Executing records delete operation")
        results = delete_records(client, offsets)
    print("Records delete operation completed:")
    for tp, result in results.items():
        if isinstance(result, KafkaError):
            print(f"partition: {tp}\terror: {exception_text(result.code)}")
        else:
            print(f"partition: {tp}\tlow_watermark: {result}")
    return 0


def _read(path: Path) -> dict[TopicPartition, int]:
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise ToolError(f"{path} can't be read: {error.strerror}") from None
    except ValueError:
        raise ToolError("The input string is not a valid JSON") from None
    if not isinstance(content, dict) or "partitions" not in content:
        raise ToolError("Missing partitions field")
    if content.get("version", 1) != 1:
        raise ToolError(f"Not supported version field value {content['version']}")
    offsets: dict[TopicPartition, int] = {}
    try:
        entries = [(TopicPartition(e["topic"], int(e["partition"])), int(e["offset"])) for e in content["partitions"]]
    except (KeyError, TypeError, ValueError):
        raise ToolError('Every partition needs "topic", "partition" and "offset"') from None
    for tp, offset in entries:
        if tp in offsets:
            raise ToolError(f"Offset json file contains duplicate topic partitions: {tp}")
        offsets[tp] = offset
    return offsets
