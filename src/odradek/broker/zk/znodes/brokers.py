"""/brokers/ids and /brokers/seqid: live brokers and their addresses."""

import re
from collections.abc import Mapping
from typing import Any

from odradek.broker.zk.json_form import to_json
from odradek.broker.zk.znodes.reading import decoded, integer, text
from odradek.model.topology import Broker, Endpoint


class BrokerIds:
    """Parent of the registrations of the live brokers."""

    path = "/brokers/ids"


class BrokerSequence:
    """Node without content. Its version is the counter of generated broker ids."""

    path = "/brokers/seqid"


_ENDPOINT = re.compile(r"(?P<listener>[^:/]+)://(?:\[(?P<v6>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>-?\d+)")
_PROTOCOL_OF_DEFAULT_LISTENERS = {name: name for name in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")}


def endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


class BrokerRegistration:
    """Ephemeral: it is there as long as the broker's session. Its czxid is the broker's epoch."""

    @staticmethod
    def path(broker_id: int) -> str:
        return f"{BrokerIds.path}/{broker_id}"

    @staticmethod
    def encode(broker: Broker, timestamp_ms: int) -> bytes:
        # host and port at the top are for clients of the oldest versions, which know plaintext only
        plaintext = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
        return to_json(
            {
                "features": {},
                "listener_security_protocol_map": {e.listener: e.security_protocol for e in broker.endpoints},
                "endpoints": [endpoint_text(e) for e in broker.endpoints],
                **({} if broker.rack is None else {"rack": broker.rack}),
                "jmx_port": -1,
                "port": plaintext.port if plaintext else -1,
                "host": plaintext.host if plaintext else None,
                "version": 5,
                "timestamp": str(timestamp_ms),
            }
        )

    @classmethod
    def decode(cls, broker_id: int, content: bytes | None, czxid: int) -> Broker:
        def read(fields: dict[str, Any]) -> Broker:
            version = integer(fields["version"])
            if version < 1:
                raise ValueError(f"unknown version {version}")
            if version == 1:
                endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", text(fields["host"]), integer(fields["port"]))
                return Broker(broker_id, (endpoint,), None, czxid)
            protocols = fields.get("listener_security_protocol_map", _PROTOCOL_OF_DEFAULT_LISTENERS)
            endpoints = tuple(cls._endpoint(shown, protocols) for shown in fields["endpoints"])
            return Broker(broker_id, endpoints, fields.get("rack"), czxid)

        return decoded(cls.path(broker_id), content, read)

    @staticmethod
    def _endpoint(shown: str, protocols: Mapping[str, str]) -> Endpoint:
        match = _ENDPOINT.fullmatch(shown)
        if match is None:
            raise ValueError(f"{shown!r} is not an endpoint")
        listener = match["listener"]
        host = match["v6"] if match["v6"] is not None else match["host"]
        return Endpoint(listener, text(protocols[listener]), host, int(match["port"]))
