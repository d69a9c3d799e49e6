"""A survey of the cluster before a migration: settings and APIs of its brokers, settings of its topics. Values."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.apps.reassign.core.view import ClusterView


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    is_odradek: bool
    values: Mapping[str, str | None]
    """The value in force of each key that the broker shows; None where it is unset or hidden."""
    chosen: frozenset[str]
    """Keys that are set, in server.properties or dynamically."""
    api_keys: frozenset[int]


@dataclass(frozen=True, slots=True)
class Survey:
    view: ClusterView
    brokers: Mapping[int, BrokerSettings]
    topics: Mapping[str, Mapping[str, str]]
    """Overrides of each topic."""
    controller: int
