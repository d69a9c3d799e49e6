"""A TCP line between two processes that can be slow in one direction, or cut.

Data of the far end arrives `delay_ms` late, in order. A cut line breaks its connections and refuses new ones until it
is mended.
"""

import contextlib
import queue
import socket
import threading
import time

_CHUNK_BYTES = 1 << 16
_CHUNKS_MAX = 10_000
_END = (0.0, b"")


class Line:
    def __init__(self, target: tuple[str, int], delay_ms: int = 0) -> None:
        self._target = target
        self._delay_s = delay_ms / 1000
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._accepting = threading.Thread(target=self._accept, name=f"line to {target[1]}", daemon=True)
        self._accepting.start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            broken, self._open = self._open, set()
        for end in broken:
            _shut(end)

    def heal(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
        _shut(self._listener)
        self._listener.close()
        self._accepting.join(timeout=10)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=10)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            with self._lock:
                admitted = not self._is_cut
                if admitted:
                    self._open |= {near, far}
            if not admitted:
                near.close()
                far.close()
                continue
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass_on, args=(near, far), name="line forwards", daemon=True).start()
            back = self._pass_on_late if self._delay_s else self._pass_on
            threading.Thread(target=back, args=(far, near), name="line back", daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                sink.sendall(data)
        self._end(source, sink)

    def _pass_on_late(self, source: socket.socket, sink: socket.socket) -> None:
        waiting: queue.Queue[tuple[float, bytes]] = queue.Queue(_CHUNKS_MAX)
        sender = threading.Thread(target=_send_when_due, args=(waiting, sink), name="line sender", daemon=True)
        sender.start()
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                waiting.put((time.monotonic() + self._delay_s, data))
        waiting.put(_END)
        sender.join()
        self._end(source, sink)

    def _end(self, source: socket.socket, sink: socket.socket) -> None:
        """End one direction; the other one reads its source to the end and closes it."""
        _shut(source)
        _shut(sink)
        with self._lock:
            self._open.discard(source)
        source.close()


def _send_when_due(waiting: "queue.Queue[tuple[float, bytes]]", sink: socket.socket) -> None:
    broken = False
    while (item := waiting.get()) != _END:
        due, data = item
        if broken:
            continue
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            sink.sendall(data)
        except OSError:
            broken = True


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
