"""Messages to the service manager of this process: systemd's notification protocol (`Type=notify`).

Each message is one datagram of KEY=VALUE lines to the socket that `NOTIFY_SOCKET` names. Without that variable nothing
is sent. A message that can't be sent is ignored.
"""

import os
import socket


def notify(*lines: str) -> bool:
    """Send `READY=1`, `STOPPING=1`, `STATUS=…`. Return whether there is a service manager."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):  # the abstract namespace of Linux
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(address)
            sender.sendall("\n".join(lines).encode())
    except OSError:
        return False
    return True
