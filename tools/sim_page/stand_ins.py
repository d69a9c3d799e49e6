"""Modules and names that Pyodide lacks, for the simulator in a browser. Import it before any module of `odradek`.

Nothing here decides anything in a simulated cluster: records are not compressed, sockets not used, and tasks of thread
pools run at once, as there are no threads.
"""

import concurrent.futures
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(data: Iterable[int], value: int = 0) -> int:
    """CRC-32C, in place of the compiled one."""
    table, crc = _TABLE, value ^ 0xFFFFFFFF
    for byte in bytes(data):
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class InlineExecutor:
    """Runs each task when it is submitted."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> "InlineExecutor":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, task: Callable[..., Any], *arguments: Any, **options: Any) -> "concurrent.futures.Future[Any]":
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(task(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, task: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        return map(task, *arguments)

    def shutdown(self, *_: object, **__: object) -> None:
        pass


_EPOLL = {"EPOLLIN": 1, "EPOLLPRI": 2, "EPOLLOUT": 4, "EPOLLERR": 8, "EPOLLHUP": 16, "EPOLLRDHUP": 0x2000}


def _module(name: str, **names: object) -> None:
    sys.modules[name] = module = ModuleType(name)
    vars(module).update(names)


def install() -> None:
    _module("crc32c", crc32c=crc32c)
    _module("cramjam", DecompressionError=type("DecompressionError", (Exception,), {}))
    for name, value in _EPOLL.items():
        if not hasattr(select, name):
            setattr(select, name, value)
    if sys.hash_info.width < 64:  # asked for by compaction, of which the page has none
        sys.hash_info = SimpleNamespace(width=64)  # type: ignore[assignment]
    concurrent.futures.ThreadPoolExecutor = InlineExecutor  # type: ignore[assignment, misc]
