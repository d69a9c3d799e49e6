"""`python -m odradek.local.coordination zoo.cfg`: the server as a process of its own, until SIGTERM or SIGINT."""

import signal
import sys
from pathlib import Path

from odradek.base import logs
from odradek.base.errors import FatalError
from odradek.base.service_manager import notify
from odradek.local.coordination.server import CoordinationServer
from odradek.local.coordination.settings import parse_zoo_cfg


def main() -> int:
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m odradek.local.coordination ZOO_CFG\n")
        return 2
    logs.configure()
    try:
        server = CoordinationServer(parse_zoo_cfg(Path(sys.argv[1]).read_text()))
        server.start()
        notify("READY=1", "STATUS=coordination server serves")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.stop())
        server.run()
    except (FatalError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


sys.exit(main())
