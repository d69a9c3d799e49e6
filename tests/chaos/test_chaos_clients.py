"""A client that a broken cluster puts out of use says why, and disturbs nobody."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from chaos.clients import ClientThread


class Doomed(ClientThread):
    def __init__(self, error: Exception) -> None:
        super().__init__("doomed")
        self._error = error

    def _live(self) -> None:
        raise self._error


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "error",
    [
        KafkaException(KafkaError(KafkaError._FATAL, "out of sequence", fatal=True)),
        SystemError("returned a result with an exception set"),
        RuntimeError("Consumer closed"),
    ],
)
def test_what_ended_it_is_recorded(error: Exception) -> None:
    with Doomed(error) as client:
        pass
    assert client.fault is not None
    assert type(error).__name__ in client.fault
