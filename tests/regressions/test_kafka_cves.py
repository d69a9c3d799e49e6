"""Faults of Apache Kafka that had a CVE: none of them is here.

Each has a test with its number in the name, here or beside the room that it is about; the first test keeps the list.
"""

import re
import socket
import struct
from pathlib import Path

import cramjam
import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.dynamic_checks import check_settings
from odradek.base.config.properties import parse_properties
from odradek.base.errors import ConfigError, KafkaError
from odradek.broker.api import dispatcher  # noqa: F401  loads every handler
from odradek.broker.api.registry import SERVED
from odradek.broker.network.frame_reader import FrameReader, Scratch
from odradek.broker.security.authentication.listener_settings import check_listeners
from odradek.client.client_security import ClientSecurity
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import Codec, decompress
from odradek.protocol.framing import decode_request
from odradek.protocol.primitives import ProtocolError
from odradek.security.https import provider_url
from odradek.security.jaas import PLAIN_MODULE
from opcodes import opcodes_of

TESTS = Path(__file__).parents[1]
KNOWN = (
    "2018_17196", "2023_25194", "2023_34455", "2024_27309", "2024_31141", "2024_56128", "2025_27817", "2025_27818",
    "2025_27819", "2026_10143", "2026_33557", "2026_35554", "2026_110985", "2026_111073", "2026_111108", "2026_111115",
)  # fmt: skip
JWKS = "sasl.oauthbearer.jwks.endpoint.url"


def test_every_known_fault_has_a_test_of_its_name() -> None:
    names = " ".join(
        name for file in TESTS.rglob("test_*.py") for name in re.findall(r"def test_cve_(\w+)", file.read_text())
    )
    assert [number for number in KNOWN if number not in names] == []


@pytest.mark.parametrize("count", [1 << 20, 0x7FFFFFFF])
def test_cve_2026_111108_an_array_is_not_allocated_before_its_elements_are_there(count: int) -> None:
    frame = struct.pack(">hhihi", ApiKey.METADATA, 1, 1, -1, count)

    def refused() -> None:
        with pytest.raises(ProtocolError):
            decode_request(memoryview(frame))

    assert opcodes_of(refused) < 20_000


def test_cve_2026_111073_no_request_is_unfolded_without_a_limit() -> None:
    """PushTelemetry, whose metrics are compressed, is not offered, as by Kafka 3.9 without a receiver."""
    assert not {71, 72} & set(SERVED)


def test_cve_2023_34455_a_snappy_block_that_claims_gigabytes_allocates_nothing() -> None:
    """The size stands before the data, as a number of up to five bytes."""
    java = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, 0x7FFFFFFF)
    claims = bytes([0xFF, 0xFF, 0xFF, 0xFF, 0x0F])
    bomb = bytes(cramjam.snappy.compress_raw(bytes(50_000_000)))
    for data in (java, java + b"x" * 10, claims, claims + b"x" * 10, bomb):
        with pytest.raises(KafkaError):
            decompress(Codec.SNAPPY, data, 1 << 20)


def test_cve_2026_35554_a_frame_belongs_to_its_request_alone() -> None:
    """The next frames of the connection, and those of others that share the read buffer, leave it as it was."""
    scratch = Scratch(4096)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        readers = [FrameReader(ours, 10_000), FrameReader(ours, 10_000)]
        kept: list[tuple[bytes, bytearray]] = []
        for n in range(60):
            frames = [bytes([n]) * size for size in (10, 100 + n, 6000 if n % 7 == 0 else 1)]
            theirs.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
            found: list[bytearray] = []
            while len(found) < len(frames):
                found += readers[n % 2].read(scratch)
            kept += zip(frames, found, strict=True)
        assert [bytes(frame) for _, frame in kept] == [expected for expected, _ in kept]
        assert len({id(frame) for _, frame in kept}) == len(kept)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "ftp://h/x",
        "jar:file:///x!/y",
        "https://u:p@h/",
        "gopher://h",
        "https:",
    ],
)
def test_cve_2025_27817_keys_come_from_where_the_file_says_and_safely(url: str) -> None:
    with pytest.raises(ConfigError):
        provider_url(JWKS, url)
    with pytest.raises(ConfigError):
        ClientSecurity(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": url,
                "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                'clientId="x" clientSecret="y";',
            }
        )


@pytest.mark.parametrize("prefix", ["", "listener.name.clients.", "listener.name.clients.oauthbearer."])
@pytest.mark.parametrize("key", [JWKS, "sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class"])
def test_cve_2025_27817_no_request_names_another_issuer(prefix: str, key: str) -> None:
    """By AlterConfigs, for one broker or for all."""
    for for_all in (False, True):
        with pytest.raises(ConfigError):
            check_settings({prefix + key: "file:///etc/passwd"}, for_all=for_all)


JNDI = "com.sun.security.auth.module.JndiLoginModule"
LDAP = "com.sun.security.auth.module.LdapLoginModule"


@pytest.mark.parametrize("module", [JNDI, LDAP, "com.example.AnyLoginModule"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"])
def test_cve_2025_27818_login_modules_are_a_closed_list(module: str, mechanism: str) -> None:
    jaas = f'{module} required user.provider.url="ldap://attacker" useFirstPass="true";'
    with pytest.raises(ConfigError, match="is not supported for"):
        ClientSecurity(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": jaas,
                "sasl.kerberos.service.name": "kafka",
            }
        )
    settings = {
        "zookeeper.connect": "zk:2181",
        "listeners": "SASL_PLAINTEXT://:9092",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config": jaas,
    }
    if not mechanism.startswith("SCRAM"):
        with pytest.raises(ConfigError, match="is not supported for"):
            check_listeners(BrokerConfig.from_properties(settings))


@pytest.mark.parametrize("prefix", ["", "listener.name.clients.plain.", "listener.name.clients.scram-sha-512."])
def test_cve_2025_27819_no_request_changes_a_login_module(prefix: str) -> None:
    with pytest.raises(ConfigError):
        check_settings({f"{prefix}sasl.jaas.config": f"{PLAIN_MODULE} required;"}, for_all=False)


def test_cve_2024_31141_no_value_is_read_from_elsewhere(tmp_path: Path) -> None:
    """Config providers: texts such as ${file:…} and ${env:…} stay what they are, on brokers and in clients."""
    secret = tmp_path / "secret.properties"
    secret.write_text("password=canary\n")
    text = f"config.providers=file\nconfig.providers.file.class=X\nsuper.users=User:${{file:{secret}:password}}\n"
    config = BrokerConfig.from_properties({**parse_properties(text), "zookeeper.connect": "zk:2181"})
    assert config.get("super.users") == f"User:${{file:{secret}:password}}"
    jaas = f'{PLAIN_MODULE} required username="u" password="${{file:{secret}:password}}";'
    told: list[bytes] = []

    def exchange(token: bytes) -> bytes:
        told.append(token)
        return b""

    security = ClientSecurity(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    )
    security.authenticate(exchange, "localhost")
    assert told == [f"\0u\0${{file:{secret}:password}}".encode()]
