"""Text form of ids, which Kafka uses everywhere except on the wire: 22 characters of URL-safe base64."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID


def uuid_to_text(value: UUID) -> str:
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def uuid_from_text(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(text + "=" * (-len(text) % 4)))
