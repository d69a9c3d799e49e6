"""Creating a topic: a new one, or one with the partitions, replicas and settings of another."""

from functools import partial

from odradek.apps.console.access import Access
from odradek.apps.console.console import Console
from odradek.apps.console.dialogs import ChangeDialog, fault_of, number_between
from odradek.apps.console.feeds import UNREADABLE, plainly
from odradek.apps.console.page import notify, off_loop, perform
from odradek.base.config.definition import ConfigSource
from odradek.client.config_admin import Resource, describe_configs, parse_changes
from odradek.client.topic_admin import CLUSTER_DEFAULT, create_topic
from odradek.model.topic_names import name_fault
from odradek.protocol.messages.describe_configs import ConfigResourceType

_PARTITIONS_MAX = 10_000
_PARTITIONS, _REPLICAS_MAX = 3, 3
_TIMEOUT_MS = 3_000


async def clone(console: Console, name: str) -> None:
    """Ask for a topic like another one; its records are not copied."""
    detail = console.topic(name).want().value
    if detail is None:
        return
    try:
        settings = await off_loop(partial(_own_settings, console.access, name))
    except UNREADABLE as error:
        notify(plainly(error), bad=True)
        return
    replicas = max((len(partition.replicas) for partition in detail.topic.partitions), default=1)
    await create(console, f"{name}-copy", len(detail.topic.partitions), replicas, as_changes(settings))


async def create(
    console: Console, wanted: str = "", partitions: int = _PARTITIONS, replicas: int = _REPLICAS_MAX, settings: str = ""
) -> None:
    """Ask for a topic and create it; the arguments are the first values of the fields."""
    state = console.cluster.want().value
    brokers = len(state.brokers) if state else 0
    known = set(state.topics) if state else set()

    def check_name(text: str) -> str | None:
        problem = name_fault(text.strip())
        return problem or (f"topic '{text.strip()}' exists already" if text.strip() in known else None)

    dialog = ChangeDialog("Create a topic", "Create")
    name = dialog.field("Name", wanted, check=check_name, full=True)
    number = dialog.field(
        "Partitions", str(partitions), check=number_between(1, _PARTITIONS_MAX, "the number of partitions")
    )
    factor = dialog.field(
        "Replicas of each",
        str(min(replicas, brokers) or 1),
        check=number_between(1, max(brokers, 1), "the number of replicas"),
    )
    configs = dialog.field(
        "Settings: key=value, key=value",
        settings,
        check=fault_of(lambda text: parse_changes(text) if text else None),
        full=True,
    )

    def sentence() -> str:
        p, r = number.value or "?", factor.value or "?"
        total = int(p) * int(r) if p.isdecimal() and r.isdecimal() else "?"
        return f"Creates topic {name.value or '…'}: {p} partitions × {r} replicas = {total} logs on {brokers} brokers."

    dialog.says(sentence)

    async def work() -> str:
        chosen = name.value.strip()
        size = f"{number.value} partitions × {factor.value} replicas"
        await perform(
            console,
            f"create topic {chosen} with {size} {configs.value}".strip(),
            lambda client: create_topic(
                client,
                chosen,
                partitions=int(number.value or CLUSTER_DEFAULT),
                replication_factor=int(factor.value or CLUSTER_DEFAULT),
                configs=parse_changes(configs.value) if configs.value.strip() else {},
            ),
        )
        return f"Topic {chosen} is there."

    await dialog.run(work)


def as_changes(settings: dict[str, str]) -> str:
    """Write settings as `parse_changes` reads them: brackets hold values with commas."""
    return ", ".join(f"{key}=[{value}]" if "," in value else f"{key}={value}" for key, value in settings.items())


def _own_settings(access: Access, topic: str) -> dict[str, str]:
    """Read settings of the topic itself, without throttled replicas, which name its partitions and brokers."""
    with access.client(_TIMEOUT_MS) as client:
        settings = describe_configs(client, Resource(ConfigResourceType.TOPIC, topic))
    return {
        setting.name: setting.value or ""
        for setting in settings
        if setting.source is ConfigSource.DYNAMIC_TOPIC_CONFIG and not setting.name.endswith("throttled.replicas")
    }
