"""A broker's connection to the controller, while controllers freeze and others are elected."""

import socket
import threading

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller_link import ControllerLink
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import Broker, Endpoint
from odradek.protocol.messages.alter_partition import AlterPartitionRequest

WAIT_S = 20


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_frozen_controller_is_not_waited_for_once_another_is_elected(protocol: str) -> None:
    """It takes connections, and answers no first byte on them: the request's own time limit is half a minute."""
    config = BrokerConfig.from_properties(
        {
            "zookeeper.connect": "127.0.0.1:2181",
            "log.dirs": "unused",
            "listeners": f"{protocol}://127.0.0.1:9092",
            "security.inter.broker.protocol": protocol,
        }
    )
    listener = config.inter_broker_listener_name
    metadata = MetadataCache()
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        port = frozen.getsockname()[1]
        brokers = {
            number: Broker(number, (Endpoint(listener, listener, "127.0.0.1", at),))
            for number, at in ((1, port), (2, 1))
        }
        metadata.publish(metadata.image.updated(1, brokers, []))
        link = ControllerLink(0, config, metadata)
        errors: list[ErrorCode] = []

        def ask() -> None:
            with pytest.raises(KafkaError) as refused:
                link.send(AlterPartitionRequest(broker_id=0, broker_epoch=1, topics=[]))
            errors.append(refused.value.code)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        connection, _ = frozen.accept()
        with connection:
            assert connection.recv(1)  # it has been asked for its versions, or for a TLS handshake
            metadata.publish(metadata.image.updated(2, brokers, []))
            asking.join(WAIT_S)
    assert errors == [ErrorCode.NOT_CONTROLLER]
    link.close()
