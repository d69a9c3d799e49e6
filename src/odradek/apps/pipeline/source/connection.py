"""Translation of the connector's `kafka.*` options, which are those of the Java client, to settings of librdkafka.

Most have one name in both and are passed unchanged, so librdkafka's own may be given too. Stores of keys and
certificates may be PEM, PKCS#12 or JKS; the latter two are read here and passed as PEM. A query without security of its
own has that of the process (`command_config`): a pipeline's secrets are no options of Spark.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from odradek.apps.pipeline.source.errors import OptionError
from odradek.base.errors import ConfigError
from odradek.client.command_config import command_settings
from odradek.security.stores import key_material, trusted_certificates

Settings: TypeAlias = dict[str, Any]

PREFIX: Final = "kafka."
BOOTSTRAP_SERVERS: Final = "kafka.bootstrap.servers"

# The connector decides these itself, and refuses them, as we do.
_REFUSED: Final = {
    "auto.offset.reset": "say startingOffsets instead",
    "key.deserializer": "keys are read as binary; cast or parse the column",
    "value.deserializer": "values are read as binary; cast or parse the column",
    "key.serializer": "keys are written as string or binary columns",
    "value.serializer": "values are written as string or binary columns",
    "enable.auto.commit": "offsets are kept in Spark's checkpoint, not committed",
    "interceptor.classes": "interceptors are Java classes",
}
_RENAMED: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
# Tuning of the Java client for which librdkafka has no counterpart; reading and writing are the same without.
_WITHOUT_COUNTERPART: Final = frozenset(
    {"max.poll.records", "default.api.timeout.ms", "max.block.ms", "ssl.truststore.password", "ssl.keystore.type",
     "ssl.keystore.password",
     "ssl.truststore.type", "ssl.protocol", "ssl.enabled.protocols", "partitioner.ignore.keys"}
)  # fmt: skip
_SECURITY: Final = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")
_ESCAPED: Final = re.compile(r"\\(.)")
_JAAS_SETTING: Final = re.compile(r"""(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\s;]+)""")


def client_settings(options: Mapping[str, str]) -> Settings:
    """Settings for any client of the cluster. `options` are the data source's, names in lower case."""
    if not options.get(BOOTSTRAP_SERVERS):
        raise OptionError(f'The option "{BOOTSTRAP_SERVERS}" is missing: where does the cluster answer?')
    settings: Settings = {"log_level": 3}
    if not any(option.startswith(_SECURITY) for option in options):  # from the command or its project
        given = {f"{PREFIX}{name}": value for name, value in command_settings().items() if name not in _REFUSED}
        options = {**given, **options}
    for option, value in options.items():
        if not option.startswith(PREFIX):
            continue
        name = option.removeprefix(PREFIX)
        if name in _REFUSED:
            raise OptionError(f'The option "{option}" is not supported: {_REFUSED[name]}')
        if name in _TRANSLATED:
            settings |= _TRANSLATED[name](value, options)
        elif name not in _WITHOUT_COUNTERPART:
            settings[_RENAMED.get(name, name)] = value
    return settings


def _jaas(value: str, _: Mapping[str, str]) -> Settings:
    """`org.apache.kafka...PlainLoginModule required username="u" password="p";`"""
    given = {name: _ESCAPED.sub(r"\1", text.strip("\"'")) for name, text in _JAAS_SETTING.findall(value)}
    if given.get("tokenauth", "").lower() == "true":
        raise OptionError("kafka.sasl.jaas.config: librdkafka has no delegation tokens (tokenauth)")
    if "username" in given and "password" in given:
        return {"sasl.username": given["username"], "sasl.password": given["password"]}
    if "principal" in given:
        keytab = {"sasl.kerberos.keytab": given["keyTab"]} if "keyTab" in given else {}
        return {"sasl.kerberos.principal": given["principal"], **keytab}
    raise OptionError("kafka.sasl.jaas.config names neither username and password nor a principal")


def _trust_store(value: str, options: Mapping[str, str]) -> Settings:
    kind = _kind_of_store(value, options.get("kafka.ssl.truststore.type"))
    if kind == "PEM":
        return {"ssl.ca.location": value}
    with _store_errors():
        return {"ssl.ca.pem": trusted_certificates(_store_settings(options, "ssl.truststore.type", kind))}


def _key_store(value: str, options: Mapping[str, str]) -> Settings:
    kind = _kind_of_store(value, options.get("kafka.ssl.keystore.type"))
    if kind == "PEM":
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    with _store_errors():
        material = key_material(_store_settings(options, "ssl.keystore.type", kind))
    if material is None:
        raise OptionError(f"kafka.ssl.keystore.location {value} has no private key")
    return {"ssl.key.pem": material.key.decode(), "ssl.certificate.pem": material.chain.decode()}


def _store_settings(options: Mapping[str, str], type_name: str, kind: str) -> dict[str, str]:
    named = {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith("kafka.ssl.")}
    return {**named, type_name: kind}


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise OptionError(f"{error}") from None


def _kind_of_store(path: str, declared: str | None) -> str:
    if declared:
        return declared.upper()
    return {"pem": "PEM", "crt": "PEM", "p12": "PKCS12", "pfx": "PKCS12"}.get(path.rpartition(".")[2].lower(), "JKS")


def _identification(value: str, _: Mapping[str, str]) -> Settings:
    return {"ssl.endpoint.identification.algorithm": value or "none"}


def _buffer_memory(value: str, _: Mapping[str, str]) -> Settings:
    return {"queue.buffering.max.kbytes": max(1, int(value) // 1024)}


_TRANSLATED: Final[Mapping[str, Callable[[str, Mapping[str, str]], Settings]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.truststore.location": _trust_store,
    "ssl.keystore.location": _key_store,
    "ssl.endpoint.identification.algorithm": _identification,
    "buffer.memory": _buffer_memory,
}
