"""Daemon of Python workers: its modules' memory stays shared with the workers that it forks."""

import gc

from odradek.apps.pipeline.worker_daemon import share_memory


def test_objects_of_the_daemon_are_not_looked_through_by_its_workers() -> None:
    try:
        share_memory()
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 10_000
    finally:
        gc.unfreeze()
