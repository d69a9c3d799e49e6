"""Passwords in ZooKeeper: Kafka's format, and texts that can't be decoded."""

import itertools
import subprocess
from pathlib import Path

import pytest

from odradek.base.errors import ConfigError
from odradek.local.java import find_java
from odradek.security.password_encoder import PasswordEncoder, Undecodable

CIPHERS = ("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding")
FACTORIES = ("PBKDF2WithHmacSHA512", "PBKDF2WithHmacSHA1")
PASSWORDS = ("x", "secret,with:commas and ü and 😀", "y" * 500)
# Encodes with the first half of its arguments, decodes the second half.
PROGRAM = """
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;
import java.util.Base64;
public class Passwords {
    public static void main(String[] words) throws Exception {
        for (String word : words) {
            String[] parts = word.split("\\\\|");
            PasswordEncoder encoder = PasswordEncoder.encrypting(
                new Password("the secret"), parts[1], parts[2], Integer.parseInt(parts[3]), 1024);
            String text = new String(Base64.getDecoder().decode(parts[4]), "UTF-8");
            String made = parts[0].equals("e") ? encoder.encode(new Password(text)) : encoder.decode(text).value();
            System.out.println(Base64.getEncoder().encodeToString(made.getBytes("UTF-8")));
        }
    }
}
"""


def encoders() -> list[PasswordEncoder]:
    made = itertools.product(CIPHERS, FACTORIES, (128, 256))
    return [PasswordEncoder("the secret", cipher, factory, bits, 1024) for cipher, factory, bits in made]


@pytest.mark.parametrize("encoder", encoders(), ids=str)
@pytest.mark.parametrize("password", PASSWORDS)
def test_what_was_encoded_is_decoded(encoder: PasswordEncoder, password: str) -> None:
    text = encoder.encode(password)
    assert password not in text or len(password) == 1
    assert text != encoder.encode(password), "another salt each time"
    assert PasswordEncoder("the secret").decode(text) == password, "the text says how it was made"
    with pytest.raises(Undecodable):
        PasswordEncoder("another secret").decode(text)
    assert "the secret" not in repr(encoder)


def test_damaged_texts() -> None:
    encoder = PasswordEncoder("the secret", iterations=1024)
    text = encoder.encode("hello")
    damaged = [text.replace("passwordLength:5", "passwordLength:6"), text.replace(":1024", ":99999999999"), "", "hello"]
    damaged += [text.replace("keyLength:128", "keyLength:129"), text.replace("AES/CBC", "DES/CBC"), text[:-20], "a,b,c"]
    for one in damaged:
        with pytest.raises(Undecodable):
            encoder.decode(one)


@pytest.mark.parametrize(("name", "value"), [("cipher", "DES"), ("key_factory", "MD5"), ("key_bits", 100)])
def test_settings_that_can_not_be_obeyed(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=r"password\.encoder"):
        PasswordEncoder("s", **{name: value})  # type: ignore[arg-type]


def test_kafka_reads_ours_and_we_read_kafka_s(kafka_lib: Path, tmp_path: Path) -> None:
    from base64 import b64decode, b64encode

    source = tmp_path / "Passwords.java"
    source.write_text(PROGRAM)
    cases = list(itertools.product(encoders(), PASSWORDS))

    def word(kind: str, encoder: PasswordEncoder, text: str) -> str:
        parts = (kind, encoder.key_factory, encoder.cipher, encoder.key_bits, b64encode(text.encode()).decode())
        return "|".join(map(str, parts))

    words = [word("e", encoder, password) for encoder, password in cases]
    words += [word("d", encoder, encoder.encode(password)) for encoder, password in cases]
    command = [str(find_java()), "-cp", f"{kafka_lib}/*", str(source), *words]
    told = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert told.returncode == 0, told.stderr
    lines = [b64decode(line).decode() for line in told.stdout.split()]
    theirs, ours = lines[: len(cases)], lines[len(cases) :]
    assert ours == [password for _, password in cases]
    assert [PasswordEncoder("the secret").decode(text) for text in theirs] == ours
