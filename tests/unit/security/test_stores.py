"""Key stores of every kind that Kafka has, written by the tools that people write them with."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from odradek.base.errors import ConfigError
from odradek.security.certificates import IssuedCertificate, issue, new_authority
from odradek.security.stores import file_marks, key_material, store_files, trusted_certificates
from odradek.security.tls_contexts import client_context, openssl_suite, server_context


@pytest.fixture(scope="module")
def authority() -> IssuedCertificate:
    return new_authority("test CA", 2)


@pytest.fixture(scope="module")
def issued(authority: IssuedCertificate) -> IssuedCertificate:
    return issue(authority, "broker", ["localhost", "127.0.0.1"], 1)


def test_pem_in_a_file(authority: IssuedCertificate, issued: IssuedCertificate, tmp_path: Path) -> None:
    file = tmp_path / "broker.pem"
    file.write_bytes(issued.key + issued.certificate + authority.certificate)
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    material = key_material(settings)
    assert material is not None
    assert material.chain.count(b"BEGIN CERTIFICATE") == 2
    assert server_context(settings).cert_store_stats()["x509"] == 0
    assert store_files(settings) == (str(file),)


def test_pem_in_the_setting_on_one_line(authority: IssuedCertificate, issued: IssuedCertificate) -> None:
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key.decode().replace("\n", " "),
        "ssl.keystore.certificate.chain": issued.certificate.decode().replace("\n", "\\n"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate.decode().replace("\n", " "),
        "ssl.client.auth": "required",
    }
    context = server_context(settings)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509_ca"] == 1


def test_an_encrypted_pem_key(issued: IssuedCertificate, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key(issued.key, None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": pem.decode(),
        "ssl.keystore.certificate.chain": issued.certificate.decode(),
    }
    server_context({**settings, "ssl.key.password": "secret"})
    with pytest.raises(ConfigError, match="can't be read"):
        server_context({**settings, "ssl.key.password": "wrong"})


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
@pytest.mark.skipif(shutil.which("keytool") is None, reason="needs Java's keytool")
def test_stores_of_keytool(kind: str, tmp_path: Path) -> None:
    keys, trust, certificate = tmp_path / "keys", tmp_path / "trust", tmp_path / "certificate.pem"

    def keytool(*arguments: object) -> None:
        command = ["keytool", *map(str, arguments), "-storepass", "secret1", "-storetype", kind, "-noprompt"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    keytool("-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=b,O=c", "-keystore", keys)
    keytool("-exportcert", "-alias", "a", "-rfc", "-keystore", keys, "-file", certificate)
    keytool("-importcert", "-alias", "a", "-file", certificate, "-keystore", trust)
    settings = {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": "secret1",
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": "secret1",
        "ssl.client.auth": "requested",
    }
    context = server_context(settings)
    assert context.cert_store_stats()["x509"] == 1
    assert trusted_certificates(settings) == certificate.read_text().replace("\r\n", "\n")
    with pytest.raises(ConfigError, match="wrong"):
        server_context({**settings, "ssl.keystore.password": "another"})
    with pytest.raises(ConfigError):
        trusted_certificates({**settings, "ssl.truststore.password": "another"})


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
@pytest.mark.skipif(None in map(shutil.which, ("keytool", "openssl")), reason="needs Java's keytool and openssl")
def test_the_issuer_of_the_own_key_is_not_trusted_for_that(
    authority: IssuedCertificate, issued: IssuedCertificate, kind: str, tmp_path: Path
) -> None:
    """One store for key and trust: who has a certificate of the key's issuer must not pass for a client."""
    clients = new_authority("CA of clients", 2)
    for name, content in (
        ("key", issued.key), ("leaf", issued.certificate), ("ca", authority.certificate),
        ("clients", clients.certificate),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
    p12, store = tmp_path / "p12", tmp_path / "store"
    options = f"-deststoretype {kind} -deststorepass secret1"
    commands = [
        f"openssl pkcs12 -export -inkey key -in leaf -certfile ca -name own -out {p12} -passout pass:secret1",
        f"keytool -importkeystore -srckeystore {p12} -srcstorepass secret1 -destkeystore {store} {options}",
    ]
    settings = {
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": "secret1",
    }
    for command in commands:
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    with pytest.raises(ConfigError, match="has no certificate"):
        trusted_certificates(settings)
    command = f"keytool -importcert -alias clients -file clients -keystore {store} -storetype {kind} -storepass secret1"
    subprocess.run([*command.split(), "-noprompt"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert trusted_certificates(settings) == clients.certificate.decode()
    command = f"keytool -importcert -alias CARoot -file ca -keystore {store} -storetype {kind} -storepass secret1"
    subprocess.run([*command.split(), "-noprompt"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert trusted_certificates(settings) == (clients.certificate + authority.certificate).decode()


@pytest.mark.parametrize("size", [0, 3, 4, 30, 100])
def test_a_damaged_store_is_refused(size: int, tmp_path: Path) -> None:
    file = tmp_path / "store"
    file.write_bytes((b"\xfe\xed\xfe\xed" + bytes(range(200)))[:size])
    with pytest.raises(ConfigError):
        key_material({"ssl.keystore.location": str(file), "ssl.keystore.password": "x"})
    with pytest.raises(ConfigError):
        trusted_certificates({"ssl.truststore.location": str(file)})


def test_a_listener_without_a_key_has_no_context() -> None:
    with pytest.raises(ConfigError, match="private key"):
        server_context({})


GOOD_SUITE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols"),
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol"),
        ({"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"}, "allows none"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "can't choose"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH_SUITE"}, "none is available"),
        ({"ssl.cipher.suites": f"{GOOD_SUITE},TLS_NO_SUCH_SUITE"}, "Invalid value TLS_NO_SUCH_SUITE"),
        ({"ssl.cipher.suites": f"{GOOD_SUITE},TLS_RSA_WITH_NULL_SHA256"}, "it protects nothing"),
        ({"ssl.cipher.suites": "ADH-AES128-SHA"}, "it protects nothing"),
        ({"ssl.cipher.suites": f"{GOOD_SUITE}:@SECLEVEL=0"}, "it is not available"),
        ({"ssl.cipher.suites": "ALL"}, "it is not available"),
        ({"ssl.endpoint.identification.algorithm": "LDAPS"}, "identification"),
        ({"ssl.truststore.type": "BKS"}, "ssl.truststore.type"),
        ({"ssl.truststore.location": "/no/such/file"}, "No such file"),
    ],
)
def test_settings_that_can_not_be_used(settings: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        client_context(settings)


def test_protocols_and_suites() -> None:
    context = client_context({"ssl.cipher.suites": f"{GOOD_SUITE}, TLS_EMPTY_RENEGOTIATION_INFO_SCSV"})
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2
    assert "ECDHE-RSA-AES256-GCM-SHA384" in {suite["name"] for suite in context.get_ciphers()}
    assert client_context({"ssl.enabled.protocols": "TLSv1.3"}).minimum_version is ssl.TLSVersion.TLSv1_3
    assert client_context({}).check_hostname
    assert not client_context({"ssl.endpoint.identification.algorithm": ""}).check_hostname
    assert openssl_suite("TLS_RSA_WITH_AES_128_CBC_SHA") == "AES128-SHA"
    assert openssl_suite("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256") == "ECDHE-ECDSA-CHACHA20-POLY1305"


def test_a_replaced_file_has_another_mark(tmp_path: Path) -> None:
    file = tmp_path / "a"
    missing = file_marks([str(file)])
    file.write_text("1")
    written = file_marks([str(file)])
    file.write_text("22")
    assert len({missing, written, file_marks([str(file)])}) == 3
