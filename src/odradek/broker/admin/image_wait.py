"""A request that waits until this broker's metadata image shows what it asked for."""

from collections.abc import Callable
from typing import Generic, TypeVar

from odradek.broker.purgatory.purgatory import DelayedOperation
from odradek.model.metadata_image import MetadataCache, MetadataImage

T = TypeVar("T")


class ImageWait(DelayedOperation, Generic[T]):
    """Wait for a metadata image. `missing` returns the parts that an image lacks; `answer` gets the parts still missing
    at the end."""

    KEY = "image"  # every image may bring what somebody waits for

    __slots__ = ("_answer", "_metadata", "_missing")

    def __init__(
        self,
        metadata: MetadataCache,
        missing: Callable[[MetadataImage], set[T]],
        timeout_ms: int,
        answer: Callable[[set[T]], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._metadata = metadata
        self._missing = missing
        self._answer = answer

    def try_complete(self) -> bool:
        return not self._missing(self._metadata.image) and self.force_complete()

    def on_complete(self) -> None:
        self._answer(self._missing(self._metadata.image))
