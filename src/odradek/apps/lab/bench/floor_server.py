"""The floor in Python: the twin of `floor.c`, with the same system calls and nothing around them."""

import os
import select
import socket
import sys

ROOM, ACKNOWLEDGEMENT = 4 << 20, 60


def serve(mode: str, path: str, size: int) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    peer, _ = listener.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    waits = select.epoll()
    waits.register(peer.fileno(), select.EPOLLIN)
    buffer = bytearray(ROOM)
    view, answer = memoryview(buffer), bytes(ROOM)
    filled = position = 0
    while True:
        waits.poll()
        received = peer.recv_into(view[filled:])
        if not received:
            return
        filled += received
        start = owed = 0
        while filled - start >= 4:
            end = start + 4 + int.from_bytes(view[start : start + 4], "big")
            if end > filled:
                break
            if mode == "produce":
                for piece in range(start + 4, end, size):
                    position += os.pwrite(file, view[piece : min(piece + size, end)], position)
                owed += ACKNOWLEDGEMENT
            elif mode == "consume":
                peer.sendall(answer[:ACKNOWLEDGEMENT], socket.MSG_MORE)
                sent = 0
                while sent < size:
                    sent += os.sendfile(peer.fileno(), file, sent, size - sent)
            else:
                owed += size
            start = end
        if owed:
            peer.sendall(answer[:owed])
        if start:
            view[: filled - start] = view[start:filled]
            filled -= start


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
