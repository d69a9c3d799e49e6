"""Buffers that are about to be filled."""

from collections.abc import Callable
from typing import Final

from odradek.native.load import compiled

new_buffer: Final[Callable[[int], bytearray]] = bytearray if compiled is None else compiled.new_buffer
"""A buffer of so many bytes. Their content is undefined: the caller hands on only those that it has written."""
