"""Changes of SCRAM credentials: which are refused, and what is left of a user's configuration."""

from odradek.base.errors import ErrorCode
from odradek.broker.security.core.scram_changes import Deletion, Upsertion, changed_config, refused_users
from odradek.broker.security.core.scram_credentials import ScramMechanism, credential_of_password, credential_text


def wanted(user: str = "alice", mechanism: int = 1, iterations: int = 4096) -> Upsertion:
    return Upsertion(user, mechanism, iterations, b"salt", b"salted")


def test_one_bad_change_refuses_its_user_alone() -> None:
    refused = refused_users(
        [
            wanted("good"),
            wanted("few", iterations=4095),
            wanted("many", iterations=16385),
            wanted("most", iterations=16384),
            wanted("unknown", mechanism=3),
            Upsertion("open", 1, 4096, b"salt", b""),
            Deletion("none", 0),
            wanted(""),
            wanted("."),
            Deletion("..", 1),
            wanted("twice"),
            Deletion("twice", 1),
            wanted("both"),
            wanted("both", mechanism=2),
            wanted("mixed"),
            wanted("mixed", mechanism=2, iterations=1),
        ]
    )
    assert {user: code for user, (code, _) in refused.items()} == {
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "unknown": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "open": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "none": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ".": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "..": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
        "mixed": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }


def test_quotas_of_a_user_stay_and_a_salted_password_becomes_the_credential() -> None:
    import hashlib

    salted = hashlib.pbkdf2_hmac("sha512", b"password", b"salt", 4096)
    changed = changed_config({"producer_byte_rate": "1"}, [Upsertion("alice", 2, 4096, b"salt", salted)])
    expected = credential_text(credential_of_password(ScramMechanism.SCRAM_SHA_512, "password", b"salt", 4096))
    assert changed == {"producer_byte_rate": "1", "SCRAM-SHA-512": expected}


def test_a_credential_that_is_not_there_cannot_be_deleted() -> None:
    assert changed_config({"SCRAM-SHA-256": "x"}, [Deletion("alice", 2)]) is None
    assert changed_config({"SCRAM-SHA-256": "x"}, [Deletion("alice", 1)]) == {}


def test_salted_passwords_are_never_shown() -> None:
    assert "salted" not in repr(wanted()).replace("salted_password", "")
