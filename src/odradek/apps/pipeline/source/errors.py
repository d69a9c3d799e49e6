"""Errors of the data source. Each is one sentence for the person who wrote the query."""


class OptionError(ValueError):
    """An option is missing, contradicts another, or can't be understood."""


class DataLoss(RuntimeError):
    """Records that the query was to read are gone, and `failOnDataLoss` is true."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Some data may have been lost because it is no longer available: the topic's retention took it or "
            "the topic was deleted while the query ran. If the query shall go on regardless, set the option "
            '"failOnDataLoss" to "false"; of a pipeline, fail_on_data_loss = false in its [sources.…].'
        )


class ReadFailed(RuntimeError):
    """The cluster did not deliver the requested records."""


class WriteFailed(RuntimeError):
    """A row was not written, or not acknowledged."""
