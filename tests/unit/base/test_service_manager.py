"""Messages to systemd, as it would receive them."""

import socket
from pathlib import Path

import pytest

from odradek.base.service_manager import notify


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_message_is_one_datagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_abstract: bool) -> None:
    address = f"@{tmp_path}/notify"[:100] if is_abstract else str(tmp_path / "n")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{address[1:]}" if is_abstract else address)
        manager.settimeout(10)
        assert notify("READY=1", "STATUS=broker 0 serves")
        assert manager.recv(1000) == b"READY=1\nSTATUS=broker 0 serves"


def test_without_a_service_manager_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "absent"))
    assert not notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", "vsock:2:1")
    assert not notify("READY=1")
