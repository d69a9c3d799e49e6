"""Bootstrap server lists: their default, and their parser."""

from odradek.base.errors import ErrorCode, KafkaError

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


def parse_bootstrap(text: str) -> list[tuple[str, int]]:
    """`host:port,host:port`; an IPv6 address is in brackets. The port is 9092 unless given."""
    addresses: list[tuple[str, int]] = []
    for item in text.split(","):
        host, colon, port = item.strip().rpartition(":")
        if not colon or port.endswith("]"):
            host, port = item.strip(), "9092"
        if not host.strip("[]") or not port.isdecimal() or not 0 < int(port) < 65536:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{text}' is not HOST:PORT,HOST:PORT,…")
        addresses.append((host.strip("[]"), int(port)))
    return addresses
