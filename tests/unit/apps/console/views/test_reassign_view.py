"""A reassignment before it runs, as the console shows it."""

from odradek.apps.console.reassigner import Draft
from odradek.apps.console.views.reassign import draft_html, run_sentence
from odradek.apps.reassign.core.forecast import foresee
from odradek.apps.reassign.core.plan import Plan
from odradek.apps.reassign.core.view import BrokerView, ClusterView, PartitionView
from odradek.model.topology import TopicPartition

MB = 1 << 20


def test_replicas_that_are_removed_are_shown_with_bytes_and_risks() -> None:
    tp = TopicPartition("orders", 0)
    partitions = {tp: PartitionView((0, 1, 2), 0, (0, 1, 2), 30 * MB)}
    view = ClusterView({b: BrokerView(b) for b in range(3)}, partitions, {"orders": 2})
    plan = Plan({tp: (0, 1)})
    draft = Draft(plan, foresee(plan, view, MB), (), MB)
    page = str(draft_html(draft, 0, read_only=False))
    assert "To remove" in page
    assert "30.0 MB" in page
    assert "1 replica<" in page
    assert "no more replicas than min.insync.replicas=2" in page
    assert "removes 1 replica, 30.0 MB." in run_sentence(draft)
