"""Identity of a process, and whether it still runs."""

import os
import subprocess
import sys

from odradek.local.process_start import process_start
from waiting import eventually


def test_a_process_that_runs_has_a_start_that_stays() -> None:
    assert process_start(os.getpid()) is not None
    assert process_start(os.getpid()) == process_start(os.getpid())


def test_one_that_has_ended_has_none_though_nobody_has_asked_for_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    eventually(lambda: process_start(child.pid) is None)
    assert child.wait() == 0
    assert process_start(child.pid) is None
