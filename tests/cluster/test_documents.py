"""Every command of README and docs does what the page says: it is run, page by page, in a directory of its own.

Without the console, which takes longer than all the rest, and which tests of its own start.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from document_commands import ROOT, as_script, blocks_of, pages
from odradek.local.cluster_processes import LocalCluster
from odradek.local.zookeeper_server import free_port, port_is_taken

FUNCTIONS = """
odradek() {
    case "$1 $*" in
        up*--port*) "$ODRADEK" "$@" ;;
        up*--secure*) "$ODRADEK" "$@" --port "$FIRST_PORT" ;;
        up*--brokers*) "$ODRADEK" "$@" --port "$FIRST_PORT" --no-console ;;
        up*) "$ODRADEK" "$@" --port "$FIRST_PORT" --no-console --set odradek.metrics.port=$(($FIRST_PORT + 100)) ;;
        elections*) until "$ODRADEK" "$@"; do sleep 0.2; done ;;  # a broker has to be in sync again
        *) "$ODRADEK" "$@" ;;
    esac
}
pip() { [ "$1" = install ]; }
interrupted() { timeout -s INT 3 "$ODRADEK" "${@:2}" || [ $? = 124 ] || [ $? = 130 ]; }
for tool in acls configs topics consumer-groups reassign-partitions; do
    eval "kafka-$tool.sh() { odradek kafka-$tool \\"\\$@\\"; }"
done
set -ex -o pipefail
"""
EVERY_RUN = ("README.md", "docs/cli.md", "docs/backup.md", "docs/installation.md")
"""Pages whose commands take seconds. The others start three brokers each, and are soaks."""
PAGES = [
    pytest.param(page, id=name, marks=() if name in EVERY_RUN else pytest.mark.soak)
    for page in pages()
    for name in [str(page.relative_to(ROOT))]
    if any(not block.not_run for block in blocks_of(page))
]


def _first_port() -> int:
    while True:
        first = free_port()
        others = [first + hundreds + broker for hundreds in (0, 100, 200, 400) for broker in range(3)]
        if max(others) < 65536 and not any(map(port_is_taken, others)):
            return first


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page(page: Path, tmp_path: Path) -> None:
    first_port = _first_port()
    run = [block for block in blocks_of(page) if not block.not_run and (not block.needs or shutil.which(block.needs))]
    script = FUNCTIONS + "".join(as_script(block, first_port) for block in run)
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),  # profiles of its own
        "ODRADEK": str(Path(sys.executable).parent / "odradek"),
        "ODRADEK_BOOTSTRAP_SERVER": f"127.0.0.1:{first_port}",
        "ODRADEK_COORDINATOR": "embedded",
        "FIRST_PORT": str(first_port),
    }
    try:
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    finally:
        for data in {path.parent.parent for path in tmp_path.glob("**/broker-*/server.properties")}:
            LocalCluster(data).stop()
