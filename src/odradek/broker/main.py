"""`odradek broker server.properties`: one broker in the foreground, until a signal stops it."""

import gc
import os
import resource
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from odradek.base import logs
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.live_config import report
from odradek.base.errors import ConfigError, FatalError
from odradek.base.log_rotation import RotatedOutput
from odradek.base.service_manager import notify
from odradek.base.threads import stop_on_failure
from odradek.broker.server import BrokerServer
from odradek.broker.zk.zk_security import zk_login
from odradek.native.load import IMPLEMENTATION, REASON, compiled

log = logs.get_logger(__name__)

# How long a thread that computes may keep the interpreter while others want it. With Python's own 5 ms, requests beside
# a busy handler thread were 2.7 times slower.
SWITCH_INTERVAL_S = 0.0005
# Thresholds of Python's collection of reference cycles. With its own thresholds it went through ten thousand groups,
# 0.1 s each time, after every few thousand commits: a third of the broker's work without a result, because objects here
# are freed by reference counting.
COLLECTOR_THRESHOLDS = (10_000, 20, 20)
# Freed memory that the C library keeps, and the size from which a block is mapped by itself. With its own thresholds
# the buffers of each request with compressed batches came from the kernel anew, with 140 page faults. A decoder of zstd
# takes 2.2 MB for a batch of Kafka's Java producer, whose frames do not say how much they hold.
KEPT_BYTES, MAPPED_BYTES = 4 << 20, 3 << 20
HALT_AFTER_S = 30.0


def run(properties_path: Path, overrides: Mapping[str, str]) -> int:
    """The exit code: 0 after a clean stop, 1 when the broker can't start or continue."""
    logs.configure(level="info", rotation=RotatedOutput.from_environment())
    log.info("inner loop", implementation=IMPLEMENTATION, reason=REASON)
    try:
        login = zk_login(os.environ.get("KAFKA_OPTS", ""))
        config = BrokerConfig.from_file(properties_path, overrides)
        report(config)
        _allow_many_files()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        if compiled is not None and not any(name.startswith("MALLOC_") and name.endswith("_") for name in os.environ):
            compiled.keep_freed_memory(KEPT_BYTES, MAPPED_BYTES)
        server = BrokerServer(config, login)
        stop_on_failure(lambda why: _give_up(server, why))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.ask_to_stop())
        server.start()
        try:
            print(f"[KafkaServer id={server.id}] started", flush=True)  # noqa: T201
            notify("READY=1", f"STATUS=broker {server.id} serves")
            server.wait()
        finally:
            notify("STOPPING=1", f"STATUS=controlled shutdown of broker {server.id}")
            server.stop()
    except (FatalError, ConfigError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 1
    return 0


def _give_up(server: BrokerServer, why: str) -> None:
    """Stop the broker; end the process if that takes too long: the failed thread may have left a lock taken."""
    if server.is_stopping:
        return
    server.fail(why)
    halt = threading.Timer(HALT_AFTER_S, os._exit, [1])
    halt.name = "halt"
    halt.daemon = True
    halt.start()


def _allow_many_files() -> None:
    """Each open segment and each connection is a descriptor: take as many as the system lets this process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
