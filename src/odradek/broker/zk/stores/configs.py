"""Overrides of topics, brokers, users and clients, and the notices by which every broker learns of a change."""

from collections.abc import Iterable, Mapping

from odradek.broker.zk.stores.access import ZnodeAccess, readable
from odradek.broker.zk.znodes import ConfigChanges, EntityConfig


class ConfigNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load_configs(self, entity_type: str, names: Iterable[str] | None = None) -> dict[str, dict[str, str]]:
        """Load the overrides of these entities, or of all. A node that can't be parsed is reported and left out."""
        wanted = self._config_names(entity_type) if names is None else list(names)
        found = self._access.read_all([EntityConfig.path(entity_type, name) for name in wanted])
        nodes = ((name, node) for name, node in zip(wanted, found, strict=True) if node is not None)
        configs = ((name, readable(EntityConfig.decode, entity_type, name, node[0])) for name, node in nodes)
        return {name: config for name, config in configs if config is not None}

    def _config_names(self, entity_type: str) -> list[str]:
        names = self._access.children(EntityConfig.parent(entity_type))
        if entity_type != "users":
            return names
        clients = self._access.children_of_all([EntityConfig.clients_of(name) for name in names])
        pairs = ((name, client) for name, theirs in zip(names, clients, strict=True) for client in theirs)
        return names + [EntityConfig.user_and_client(name, client) for name, client in pairs]

    def load_config(self, entity_type: str, name: str) -> dict[str, str]:
        """Load the overrides of an entity; empty if nothing was set."""
        return self.load_configs(entity_type, [name]).get(name, {})

    def set_config(self, entity_type: str, name: str, config: Mapping[str, str]) -> None:
        """Replace the overrides of the entity, and notify every broker."""
        self._access.put(EntityConfig.path(entity_type, name), EntityConfig.encode(config))
        self._access.create_sequential(ConfigChanges.sequence_path, ConfigChanges.encode(entity_type, name))

    def load_config_changes(self, after: str | None = None) -> list[tuple[str, str, str]]:
        """The notices that came after the one of that name, in order: its name, the entity's type, the entity's name.

        A notice that can't be parsed is reported and skipped.
        """
        names = [name for name in self._access.children(ConfigChanges.path) if after is None or name > after]
        found = self._access.read_all([ConfigChanges.child(name) for name in names])
        nodes = ((name, node) for name, node in zip(names, found, strict=True) if node is not None)
        changes = ((name, readable(ConfigChanges.decode, name, node[0])) for name, node in nodes)
        return [(name, *change) for name, change in changes if change is not None]

    def purge_config_changes(self, now_ms: int) -> None:
        """Remove the notices that every broker has had the time to read."""
        self._access.purge(ConfigChanges.path, now_ms, ConfigChanges.kept_ms)
