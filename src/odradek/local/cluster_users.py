"""Users of a cluster made with `up --secure`, and the rights of its application, created through one of its brokers."""

import os
from collections.abc import Mapping
from hashlib import pbkdf2_hmac

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.client_security import ClientSecurity
from odradek.client.cluster_client import ClusterClient
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse

_MECHANISM_NUMBER, _HASH = 2, "sha512"  # of SCRAM-SHA-512
_ITERATIONS = 8192
_NAMED_RESOURCES = (2, 3, 5)  # topics, groups, transactional ids; numbers fixed by CreateAcls
_PREFIXED, _ALL, _ALLOW = 4, 2, 3


def create_users(users: Mapping[str, str], application: str, bootstrap: str, security: ClientSecurity) -> None:
    """Create users by their passwords, and the application's ACLs. Existing ones stay: users get the same password."""
    credentials = AlterUserScramCredentialsRequest(upsertions=[_credential(*user) for user in users.items()])
    rights = CreateAclsRequest(creations=_application_acls(application))
    with ClusterClient(bootstrap, security=security) as client:

        def create() -> None:
            made = client.ask_controller(credentials, AlterUserScramCredentialsResponse)
            for result in made.results:
                _check(result.error_code, result.error_message)
            for allowed in client.ask_controller(rights, CreateAclsResponse).results:
                _check(allowed.error_code, allowed.error_message)

        client.retrying(create)


def _credential(user: str, password: str) -> ScramCredentialUpsertion:
    salt = os.urandom(24)
    salted = pbkdf2_hmac(_HASH, password.encode(), salt, _ITERATIONS)
    return ScramCredentialUpsertion(
        name=user, mechanism=_MECHANISM_NUMBER, iterations=_ITERATIONS, salt=salt, salted_password=salted
    )


def _check(error_code: int, message: str | None) -> None:
    if error_code:
        raise KafkaError(ErrorCode(error_code), message or "")


def _application_acls(application: str) -> list[AclCreation]:
    """Return rights to all names that begin with the application's, and to nothing else."""
    return [
        AclCreation(
            resource_type=kind,
            resource_name=application,
            resource_pattern_type=_PREFIXED,
            principal=f"User:{application}",
            host="*",
            operation=_ALL,
            permission_type=_ALLOW,
        )
        for kind in _NAMED_RESOURCES
    ]
