"""Selection of groups, and of their topics, by the options of a command."""

from dataclasses import dataclass
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.usage import WrongUsage
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import list_groups

TopicsOption = Annotated[
    list[str] | None,
    Option("--topic, -t", metavar="TOPIC[:0,1]", help="A topic, or some of its partitions; may be repeated."),
]


@dataclass(frozen=True, slots=True)
class Groups:
    names: Annotated[
        list[str] | None, Argument(metavar="GROUP", help="Groups; the same as --group.", show_default=False)
    ] = None
    group: Annotated[
        list[str] | None,
        Option("--group, -g", metavar="GROUP", help="A group; may be repeated.", show_default=False),
    ] = None
    all_groups: Annotated[bool, Option("--all-groups", help="Every group.")] = False

    def chosen(self, client: ClusterClient) -> list[str]:
        named = list(dict.fromkeys([*(self.names or []), *(self.group or [])]))
        if bool(named) == self.all_groups:
            raise WrongUsage("name the group, as a word or with --group, or give --all-groups")
        return [item.group for item in list_groups(client) if item.is_consumers] if self.all_groups else named
