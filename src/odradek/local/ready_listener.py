"""Receiver of `READY=1` of a process that this program starts: systemd's notification protocol, from the other side.

    listener = ReadyListener()
    start(…, environment={"NOTIFY_SOCKET": listener.address})
    listener.wait(seconds)

A message is a hint to look, not a proof: any process of this machine can send one.
"""

import socket


class ReadyListener:
    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("")  # the kernel chooses a name in the abstract namespace
        self.address = f"@{self._socket.getsockname()[1:].decode()}"

    def wait(self, seconds: float) -> bool:
        """Return whether a message came within this time."""
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(1 << 12)
        except TimeoutError:
            return False
        return True

    def __del__(self) -> None:
        self._socket.close()
