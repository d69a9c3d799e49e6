"""A TLS client that sends KeyUpdate messages and nothing else, as fast as OpenSSL makes them.

    key_updates.py LIBSSL PORT SECONDS

Prints how many it sent, and whether the other side ended the connection.
"""

import ctypes
import socket
import sys
import time

TIMES_A_LOOK = 100


def main(library: str, port: int, seconds: float) -> None:
    lib = ctypes.CDLL(library)
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    for name in ("SSL_CTX_new", "SSL_new", "SSL_connect", "SSL_do_handshake"):
        getattr(lib, name).argtypes = [ctypes.c_void_p]
    for name in ("SSL_set_fd", "SSL_key_update"):
        getattr(lib, name).argtypes = [ctypes.c_void_p, ctypes.c_int]
    with socket.create_connection(("127.0.0.1", port), 20) as plain:
        plain.settimeout(None)
        ssl = lib.SSL_new(lib.SSL_CTX_new(lib.TLS_client_method()))
        lib.SSL_set_fd(ssl, plain.fileno())
        assert lib.SSL_connect(ssl) == 1
        sent, ends = 0, time.monotonic() + seconds
        while time.monotonic() < ends:
            for _ in range(TIMES_A_LOOK):
                if lib.SSL_key_update(ssl, 0) != 1 or lib.SSL_do_handshake(ssl) != 1:
                    print(sent, "ended")  # noqa: T201
                    return
                sent += 1
        print(sent, "went on")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
