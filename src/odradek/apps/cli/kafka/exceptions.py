"""Errors as Kafka's Java clients name them; some of its tools print that name."""

from odradek.base.errors import ErrorCode

_PACKAGE = "org.apache.kafka.common.errors"
_NAMES = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
}
# messages of the client for errors without a message of the broker
_MESSAGES = {
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The requested offset is not within the range of offsets maintained by the server.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def exception_name(code: ErrorCode) -> str:
    name = _NAMES.get(code) or "".join(word.capitalize() for word in code.name.split("_")) + "Exception"
    return f"{_PACKAGE}.{name}"


def exception_text(code: ErrorCode, message: str | None = None) -> str:
    return f"{exception_name(code)}: {message or _MESSAGES.get(code, code.name)}"
