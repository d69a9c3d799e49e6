"""The quota that applies to a client, of all that are set. The order is that of Kafka's documentation."""

import pytest

from odradek.broker.quotas.core.quota_table import Limit, QuotaEntity, QuotaTable, desanitized, read_table, sanitized

KEY = "producer_byte_rate"
IN_ORDER = [
    ("users", "alice/clients/app", QuotaEntity("alice", "app")),
    ("users", "alice/clients/<default>", QuotaEntity("alice", "app")),
    ("users", "alice", QuotaEntity("alice", "")),
    ("users", "<default>/clients/app", QuotaEntity("alice", "app")),
    ("users", "<default>/clients/<default>", QuotaEntity("alice", "app")),
    ("users", "<default>", QuotaEntity("alice", "")),
    ("clients", "app", QuotaEntity("", "app")),
    ("clients", "<default>", QuotaEntity("", "app")),
]


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_the_most_particular_one_holds(first: int) -> None:
    nodes: dict[str, dict[str, dict[str, str]]] = {"users": {}, "clients": {}}
    for position, (kind, name, _) in enumerate(IN_ORDER[first:], first):
        nodes[kind][name] = {KEY: str(position)}
    table, faults = read_table(KEY, nodes["users"], nodes["clients"])
    assert table.of("alice", "app") == Limit(IN_ORDER[first][2], float(first))
    assert faults == []


def test_others_are_not_limited() -> None:
    table, _ = read_table(KEY, {"alice": {KEY: "1"}, "bob/clients/app": {KEY: "2"}}, {"tool": {KEY: "3"}})
    assert table.of("bob", "other") is None
    assert table.of("carol", "app") is None
    assert table.of("bob", "tool") == Limit(QuotaEntity("", "tool"), 3)
    assert not QuotaTable({})


def test_names_are_as_znodes_spell_them() -> None:
    assert sanitized("a b/ü%*~") == "a%20b%2F%C3%BC%25%2A~"
    assert desanitized(sanitized("a b/ü%*~<default>")) == "a b/ü%*~<default>"
    table, _ = read_table(KEY, {"%3Cdefault%3E": {KEY: "1"}, "a%20b": {KEY: "2"}}, {})
    assert table.of("<default>", "x") == Limit(QuotaEntity("<default>", ""), 1)
    assert table.of("a b", "x") == Limit(QuotaEntity("a b", ""), 2)
    assert table.of("alice", "x") is None


def test_what_is_no_rate_is_reported_and_left_out() -> None:
    users = {"a": {KEY: "fast"}, "b": {KEY: "-1"}, "c": {KEY: "nan"}, "d": {"SCRAM-SHA-256": "secret"}, "e": {KEY: "5"}}
    table, faults = read_table(KEY, users, {})
    assert [table.of(name, "") for name in "abcd"] == [None] * 4
    assert table.of("e", "") == Limit(QuotaEntity("e", ""), 5)
    assert len(faults) == 3
