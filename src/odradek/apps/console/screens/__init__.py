"""One module for each screen: its feeds, its views, its changes."""

from odradek.apps.console.screens import (
    acls,
    brokers,
    cluster,
    groups,
    history,
    lab,
    messages,
    not_found,
    pipelines,
    quotas,
    reassign,
    topic,
    topics,
    transactions,
    users,
)

SCREENS = tuple(
    screen.register
    for screen in (
        *(cluster, brokers, topics, topic, messages, groups, transactions, reassign, history, pipelines),
        *(users, acls, quotas, lab, not_found),
    )
)
