"""`odradek sim --seed N --watch`: the simulated cluster after each step."""

import sys
import time

from odradek.sim.story import Step, Story

_SECONDS_A_STEP = 0.15
_CLEAR = "\x1b[H\x1b[2J"
_LINES = 12


def show_step(story: Story, number: int, step: Step) -> None:
    """On a terminal each picture replaces the one before; elsewhere they follow each other."""
    on_terminal = sys.stdout.isatty()
    lines = [f"step {number}: {step.name.replace('_', ' ')}", "", *picture(story), "", *story.trace[-_LINES:]]
    sys.stdout.write((_CLEAR if on_terminal else "") + "\n".join(lines) + "\n")
    sys.stdout.flush()
    if on_terminal:
        time.sleep(_SECONDS_A_STEP)


def picture(story: Story) -> list[str]:
    """A line per broker: what it is, and for each of its replicas role, epoch, high watermark and end."""
    context = story.world.context
    lines = []
    for broker_id in story.broker_ids:
        broker = story.brokers.get(broker_id)
        session = "session" if broker_id in story.world.registered else "no session"
        controls = "controller" if context is not None and context.broker_id == broker_id else ""
        lines.append(f"broker {broker_id}  {'up' if broker else 'down':5}{session:12}{controls}")
        for tp, partition in sorted(broker.replicas.partitions.items()) if broker else ():
            role = "leader" if partition.is_leader else "follower"
            offsets = f"hw {partition.high_watermark:4}  end {partition.log.log_end_offset:4}"
            lines.append(f"    {tp!s:24}{role:9}epoch {partition.leader_epoch:3}  {offsets}")
    lines += [
        f"{tp!s:28}leader {s.leader:2}  epoch {s.leader_epoch}  isr {s.isr}"
        for tp, s in sorted(story.world.states.items())
    ]
    lines.append(f"messages under way: {len(story.network.messages)}")
    return lines
