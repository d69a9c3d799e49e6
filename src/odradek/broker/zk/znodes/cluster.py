"""The cluster as a whole: its id, its controller, and the producer ids that were handed out."""

from typing import Any

from odradek.base.value_classes import dataclass
from odradek.broker.zk.json_form import to_json
from odradek.broker.zk.znodes.reading import CorruptZnode, decoded, integer, text


class ClusterId:
    path = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        return to_json({"version": "1", "id": cluster_id})

    @classmethod
    def decode(cls, content: bytes | None) -> str:
        return decoded(cls.path, content, lambda fields: text(fields["id"]))


class Controller:
    """Ephemeral: its creator is the controller."""

    path = "/controller"

    @staticmethod
    def encode(broker_id: int, timestamp_ms: int) -> bytes:
        return to_json(
            {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
        )

    @classmethod
    def decode(cls, content: bytes | None) -> int:
        return decoded(cls.path, content, lambda fields: integer(fields["brokerid"]))


class ControllerEpoch:
    """Number of controllers so far; a plain number, and the one node not in JSON."""

    path = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        return str(epoch).encode()

    @classmethod
    def decode(cls, content: bytes | None) -> int:
        try:
            return int(content or b"")
        except ValueError as error:
            raise CorruptZnode(cls.path, content, "not a number") from error


@dataclass(frozen=True, slots=True)
class ProducerIds:
    """A block of producer ids that one broker may hand out, both ends included."""

    broker_id: int
    first: int
    last: int


class ProducerIdBlock:
    """The block handed out last; empty until the first."""

    path = "/latest_producer_id_block"

    @staticmethod
    def encode(block: ProducerIds) -> bytes:
        return to_json(
            {
                "version": 1,
                "broker": block.broker_id,
                "block_start": str(block.first),
                "block_end": str(block.last),
            }
        )

    @classmethod
    def decode(cls, content: bytes | None) -> ProducerIds:
        def read(fields: dict[str, Any]) -> ProducerIds:
            return ProducerIds(integer(fields["broker"]), int(fields["block_start"]), int(fields["block_end"]))

        return decoded(cls.path, content, read)
