"""Run by a test: wrong logins from one address, as many a second as it is told or as the machine can.

    python login_flood.py PORT ADDRESS LOGINS_PER_SECOND

Connections are opened without waiting for answers. Prints the number of attempts so far at each line of its input.
"""

import selectors
import socket
import sys
import time

from odradek.protocol.framing import encode_request
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest

OPEN_MAX = 5_000
_LOGIN = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "") + encode_request(
    SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2, 2, ""
)


def main(port: int, address: str, rate: int) -> None:
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    attempts, open_count, began = 0, 0, time.monotonic()
    while True:
        due = (time.monotonic() - began) * rate - attempts
        while due > 0 and open_count < OPEN_MAX:
            attempts, open_count, due = attempts + 1, open_count + 1, due - 1
            connecting = socket.socket()
            connecting.setblocking(False)
            connecting.bind((address, 0))
            connecting.connect_ex(("127.0.0.1", port))
            selector.register(connecting, selectors.EVENT_WRITE)
        for key, ready in selector.select(0.001):
            if key.fileobj is sys.stdin:
                if not sys.stdin.readline():
                    return
                sys.stdout.write(f"{attempts}\n")
                sys.stdout.flush()
                continue
            open_count -= _advance(selector, key.fileobj, ready)  # type: ignore[arg-type]


def _advance(selector: selectors.DefaultSelector, connection: socket.socket, ready: int) -> int:
    """Send the login, then wait for the end; 1 when it came."""
    try:
        if ready & selectors.EVENT_WRITE:
            connection.send(_LOGIN)
            selector.modify(connection, selectors.EVENT_READ)
            return 0
        if connection.recv(4096):
            return 0
    except OSError:
        pass
    selector.unregister(connection)
    connection.close()
    return 1


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
