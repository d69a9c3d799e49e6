"""Quotas as a table: entity, quota, value."""

import json
from collections.abc import Sequence

from odradek.apps.console.markup import Html, tag, together
from odradek.apps.console.views.parts import Column, button, table
from odradek.apps.figures import size_text
from odradek.client.quota_admin import Quotas, entity_as_text

QUOTAS = {
    "producer_byte_rate": "bytes per second produced",
    "consumer_byte_rate": "bytes per second fetched",
    "request_percentage": "time of request threads",
    "controller_mutation_rate": "partitions created or deleted per second",
    "connection_creation_rate": "connections per second",
}


def quotas_table(quotas: Sequence[Quotas], *, read_only: bool) -> Html:
    rows = [
        (
            tag("b", entity_as_text(each.entity)),
            QUOTAS.get(key, key),
            tag("span", quota_text(key, value), title=f"{value:g}"),
            None if read_only else _acts(each, key),
        )
        for each in quotas
        for key, value in sorted(each.values.items())
    ]
    columns = [Column("Entity"), Column("Quota"), Column("Limit", numeric=True), Column("", numeric=True)]
    return table(columns, rows, empty="There are no quotas.")


def quota_text(key: str, value: float) -> str:
    if key.endswith("byte_rate"):
        return size_text(value, "/s")
    return f"{value:g} %" if key.endswith("percentage") else f"{value:g}/s"


def _acts(each: Quotas, key: str) -> Html:
    entity = json.dumps(each.entity)
    return together(
        button("Change", "set", cls="btn small", entity=entity, key=key),
        " ",
        button("Remove", "remove", cls="btn small danger", entity=entity, key=key),
    )


def quota_fault(text: str) -> str | None:
    try:
        return None if float(text) > 0 else "more than 0"
    except ValueError:
        return "a number, such as 1048576"
