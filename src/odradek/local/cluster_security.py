"""Security of a local cluster: what `odradek up --secure` makes, and keeps in the cluster's directory.

    DIR/security/ca.pem, ca.key         the authority that all certificates of the cluster come from
    DIR/security/broker-N.pem           key and certificate of a broker: for clients, and to show to other brokers
    DIR/security/users.properties       passwords of the users that were made
    DIR/security/brokers.properties     secrets that the brokers share: by one, the coordination server knows them
    DIR/client.properties               the administrator's connection, for Kafka's tools and ours
    DIR/app.properties                  an application's
    DIR/console.properties              the web console's, without a user: each user logs in with his own password
    DIR/kcat.conf                       the application's for kcat, and for librdkafka's clients
    DIR/example.py                      a program that uses it with confluent-kafka

Clients log in with SCRAM over TLS, and without an ACL a user may do nothing: the administrator is a super user, the
application has what begins with `app`. Brokers talk on a listener of their own, where both sides show a certificate.
In the coordination server's tree, which any process of the machine reaches, brokers alone change nodes, and read users
and tokens. All files but ca.pem are readable by their owner alone, and so are records and the tree.
"""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.base.config.properties import format_properties, parse_properties
from odradek.security.certificates import IssuedCertificate, expiry_of, issue, new_authority
from odradek.security.jaas import SCRAM_MODULE

if TYPE_CHECKING:
    from odradek.client.client_security import ClientSecurity

ADMIN, APPLICATION = "admin", "app"
INTERNAL_PORTS_AFTER = 200
"""The listener between brokers is at the clients' port + 200."""
_BROKERS = "broker"  # the user that each certificate of a broker stands for
MECHANISM = "SCRAM-SHA-512"
_DIGEST_KEY = "odradek.zookeeper.digest"
_AUTHORITY_DAYS = 3650
_BROKER_DAYS = 365
_RENEW_BEFORE = timedelta(days=30)
_HOSTS = ("localhost", "127.0.0.1", "::1")
_EXAMPLE = '''\
"""Write a record as the application, and read it back. Needs confluent-kafka."""

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

lines = Path(__file__).with_name("kcat.conf").read_text().splitlines()
settings = dict(line.split("=", 1) for line in lines)
reports = []

producer = Producer(settings)
producer.produce("app-example", b"hello", on_delivery=lambda *report: reports.append(report))
producer.flush(30)
error, written = reports[0]
if error:
    raise SystemExit(f"not written: {error}")
print("written at offset", written.offset())

consumer = Consumer({**settings, "group.id": "app-example"})
consumer.assign([TopicPartition(written.topic(), written.partition(), written.offset())])
read = consumer.poll(30)
print("read:", read and (read.error() or read.value().decode()))
consumer.close()
'''


def secured_listeners(port: int) -> str:
    return f"SASL_SSL://127.0.0.1:{port},INTERNAL://127.0.0.1:{port + INTERNAL_PORTS_AFTER}"


class ClusterSecurity:
    def __init__(self, data: Path) -> None:
        self._data = data
        self._directory = data / "security"
        self._authority_file = self._directory / "ca.pem"
        self._authority_key_file = self._directory / "ca.key"
        self.users_file = self._directory / "users.properties"
        self._broker_secrets_file = self._directory / "brokers.properties"
        self._broker_secrets: Mapping[str, str] | None = None
        self.client_file = data / "client.properties"
        self.application_file = data / "app.properties"
        self.console_file = data / "console.properties"
        self.kcat_file = data / "kcat.conf"
        self.example_file = data / "example.py"

    @property
    def exists(self) -> bool:
        return self._authority_file.exists()

    def prepare(self, broker_ids: Iterable[int], bootstrap: str) -> list[int]:
        """Make missing files, and new certificates where theirs end soon; return the brokers with new ones."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        for directory in (self._data / "zookeeper", *self._data.glob("broker-*")):
            if directory.is_dir():
                directory.chmod(0o700)
        if not self.exists:
            _write(self._broker_secrets_file, format_properties(self._secrets_of_brokers()).encode())
            authority = new_authority("Odradek local authority", _AUTHORITY_DAYS)
            _write(self._authority_key_file, authority.key)
            _write(self._authority_file, authority.certificate)
            self._authority_file.chmod(0o644)
        if not self.users_file.exists():
            import secrets

            users = {name: secrets.token_urlsafe(24) for name in (ADMIN, APPLICATION)}
            _write(self.users_file, format_properties(users).encode())
        renewed = [broker_id for broker_id in broker_ids if self._is_due(broker_id)]
        self.issue(renewed)
        self._write_client_files(bootstrap)
        return renewed

    def issue(self, broker_ids: Iterable[int]) -> None:
        """New keys and certificates. A broker that runs takes them into use within seconds."""
        authority = IssuedCertificate(self._authority_key_file.read_bytes(), self._authority_file.read_bytes())
        for broker_id in broker_ids:
            issued = issue(authority, f"broker-{broker_id}", _HOSTS, _BROKER_DAYS)
            _write(self._broker_file(broker_id), issued.key + issued.certificate)

    def expiries(self) -> dict[str, datetime]:
        """Return the end of each certificate, by the name of its file."""
        files = [self._authority_file, *sorted(self._directory.glob("broker-*.pem"))] if self.exists else []
        return {file.name: expiry_of(_certificate_in(file)) for file in files}

    def broker_settings(self, broker_id: int) -> dict[str, str]:
        """Return the settings for server.properties, without its listeners."""
        return {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,INTERNAL:SSL",
            "inter.broker.listener.name": "INTERNAL",
            "sasl.enabled.mechanisms": MECHANISM,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._broker_file(broker_id)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority_file),
            "listener.name.internal.ssl.client.auth": "required",
            "listener.name.internal.ssl.principal.mapping.rules": f"RULE:^CN=broker-[0-9]+,O=Odradek$/{_BROKERS}/",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN};User:{_BROKERS}",
            **self._secrets_of_brokers(),
        }

    def _secrets_of_brokers(self) -> Mapping[str, str]:
        """Return settings that are equal on all brokers: none in a directory from before there were any, whose nodes
        are open."""
        if self._broker_secrets is None:
            if self._broker_secrets_file.exists():
                self._broker_secrets = parse_properties(self._broker_secrets_file.read_text())
            else:
                self._broker_secrets = {} if self.exists else _new_secrets()
        return self._broker_secrets

    def inter_broker_client(self, broker_id: int) -> "ClientSecurity":
        from odradek.client.client_security import ClientSecurity

        return ClientSecurity(
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self._authority_file),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._broker_file(broker_id)),
            }
        )

    def secure_coordination(self, connect: str) -> None:
        """Keep other processes from changing the root of the directory's own coordination server."""
        digest = self._secrets_of_brokers().get(_DIGEST_KEY)
        if digest is not None:
            from odradek.broker.zk.root_rights import give_root_to_brokers

            give_root_to_brokers(connect, digest)

    def create_users(self, broker_id: int, address: tuple[str, int]) -> None:
        """The users whose passwords are kept here and the application's rights, through one broker. What exists stays:
        users get the same password again."""
        from odradek.local.cluster_users import create_users

        users = parse_properties(self.users_file.read_text())
        bootstrap = f"{address[0]}:{address[1] + INTERNAL_PORTS_AFTER}"
        create_users(users, APPLICATION, bootstrap, self.inter_broker_client(broker_id))

    def _broker_file(self, broker_id: int) -> Path:
        return self._directory / f"broker-{broker_id}.pem"

    def _is_due(self, broker_id: int) -> bool:
        file = self._broker_file(broker_id)
        return not file.exists() or expiry_of(_certificate_in(file)) < datetime.now(UTC) + _RENEW_BEFORE

    def _write_client_files(self, bootstrap: str) -> None:
        users = parse_properties(self.users_file.read_text())
        for user, file in ((ADMIN, self.client_file), (APPLICATION, self.application_file)):
            _write(file, format_properties(self._client_settings(user, users[user], bootstrap)).encode())
        connection = self._connection_settings(bootstrap)
        _write(self.console_file, format_properties(connection).encode())
        kcat = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": MECHANISM,
            "sasl.username": APPLICATION,
            "sasl.password": users[APPLICATION],
            "ssl.ca.location": str(self._authority_file),
        }
        _write(self.example_file, _EXAMPLE.encode())
        _write(self.kcat_file, "".join(f"{key}={value}\n" for key, value in kcat.items()).encode())

    def _client_settings(self, user: str, password: str, bootstrap: str) -> Mapping[str, str]:
        login = f'{SCRAM_MODULE} required username="{user}" password="{password}";'
        return {**self._connection_settings(bootstrap), "sasl.jaas.config": login}

    def _connection_settings(self, bootstrap: str) -> Mapping[str, str]:
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority_file),
        }


def _new_secrets() -> dict[str, str]:
    import secrets

    return {
        "zookeeper.set.acl": "true",
        _DIGEST_KEY: f"{_BROKERS}:{secrets.token_urlsafe(24)}",
        "delegation.token.secret.key": secrets.token_urlsafe(32),
    }


def _certificate_in(file: Path) -> bytes:
    text = file.read_bytes()
    return text[text.index(b"-----BEGIN CERTIFICATE-----") :]


def _write(file: Path, content: bytes) -> None:
    """Write the file whole or not at all, readable by its owner alone from its first moment."""
    temporary = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as opened:
        opened.write(content)
    temporary.rename(file)
