"""Files for containers and systemd, as far as they can be checked without either; what a release has."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.base.config.keys import BROKER_KEYS
from odradek.base.config.properties import parse_properties

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def test_compose_gives_brokers_settings_that_there_are() -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((DEPLOY / "compose.yml").read_text())["services"]
    brokers = {name: service for name, service in services.items() if name.startswith("broker-")}
    assert len(brokers) == 3
    for name, service in brokers.items():
        environment = service["environment"]
        given = parse_properties(environment["ODRADEK_SETTINGS"] + environment["ODRADEK_BROKER"])
        assert set(given) - set(BROKER_KEYS) == set()
        assert given["broker.id"] == name.removeprefix("broker-")
        assert f"INSIDE://{service['hostname']}:9092" in given["advertised.listeners"]
        port = given["advertised.listeners"].rpartition(":")[2]
        assert service["ports"] == [f"127.0.0.1:{port}:9093"]


def test_the_start_script_writes_settings_that_there_are() -> None:
    script = (DEPLOY / "container-start").read_text()
    named = {key for key in re.findall(r"^([a-z][a-z.]+)=", script, re.MULTILINE) if "." in key}
    assert named
    assert named - set(BROKER_KEYS) == set()
    assert subprocess.run(["sh", "-n", DEPLOY / "container-start"], check=False).returncode == 0


def test_the_image_runs_without_privileges_and_has_a_health_check() -> None:
    lines = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text()).splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if line and not line.startswith(("#", " "))]
    kinds = [kind for kind, _ in instructions]
    known = {
        "FROM",
        "RUN",
        "WORKDIR",
        "COPY",
        "LABEL",
        "ENV",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
    }
    assert set(kinds) <= known
    assert kinds.index("USER") > max(at for at, kind in enumerate(kinds) if kind == "RUN")
    assert dict(instructions)["USER"] == "10001:10001"
    assert "HEALTHCHECK" in kinds
    copied = [rest.split()[:-1] for kind, rest in instructions if kind == "COPY" and "--from" not in rest]
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is absent")
def test_the_unit_is_one(tmp_path: Path) -> None:
    unit = tmp_path / "odradek.service"
    text = (DEPLOY / "odradek.service").read_text()
    assert "Type=notify" in text
    unit.write_text(text.replace("/opt/odradek/bin/odradek", shutil.which("true") or "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert [line for line in done.stderr.splitlines() if "odradek.service" in line] == []


def test_a_release_has_an_sbom_and_notes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "release.py", tmp_path], check=True, timeout=60)
    (bill,) = tmp_path.glob("*.cdx.json")
    components = json.loads(bill.read_text())["components"]
    names = {component["name"] for component in components}
    assert {"kazoo", "cryptography", "cramjam"} <= names
    assert "typing_extensions" not in names  # cryptography needs it on Python 3.10 alone
    (notes,) = tmp_path.glob("release-notes-*.md")
    assert notes.read_text().startswith("# Odradek ")
