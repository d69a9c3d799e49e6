"""/config: overrides of topics, brokers, users and clients."""

from collections.abc import Mapping
from typing import Any

from odradek.broker.zk.json_form import properties_order, to_json
from odradek.broker.zk.znodes.reading import decoded, text

CONFIG_TYPES = ("topics", "clients", "users", "brokers", "ips")
DEFAULT_ENTITY = "<default>"


class EntityConfig:
    """Overrides of one topic, broker, user, client or address (or `DEFAULT_ENTITY`)."""

    @staticmethod
    def parent(entity_type: str) -> str:
        return f"/config/{entity_type}"

    @classmethod
    def path(cls, entity_type: str, name: str) -> str:
        return f"{cls.parent(entity_type)}/{name}"

    @classmethod
    def clients_of(cls, user: str) -> str:
        return f"{cls.path('users', user)}/clients"

    @staticmethod
    def user_and_client(user: str, client_id: str) -> str:
        """The name of a user and client pair, below /config/users."""
        return f"{user}/clients/{client_id}"

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        return to_json({"version": 1, "config": {key: config[key] for key in properties_order(config)}})

    @classmethod
    def decode(cls, entity_type: str, name: str, content: bytes | None) -> dict[str, str]:
        if not content:
            return {}

        def read(fields: dict[str, Any]) -> dict[str, str]:
            return {key: text(value) for key, value in fields["config"].items()}

        return decoded(cls.path(entity_type, name), content, read)
