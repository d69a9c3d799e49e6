"""The audit log: bounded files, and entries that can hold no secret."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from odradek.base.clock import SYSTEM_CLOCK
from odradek.broker.api.audit_entries import change_entry, outcome_of
from odradek.broker.security.audit_log import FILE_NAME, FILES_KEPT, AuditLog
from odradek.broker.security.principal import KafkaPrincipal
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import alter_user_scram_credentials as scram
from odradek.protocol.messages import incremental_alter_configs as configs
from odradek.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest


def context(key: ApiKey) -> Any:
    return SimpleNamespace(
        connection=SimpleNamespace(listener_name="SASL_SSL"),
        principal=KafkaPrincipal("User", "alice"),
        client_host="10.0.0.1",
        client_id="c",
        header=SimpleNamespace(api_key=key),
    )


def test_files_are_bounded_and_hold_one_entry_a_line(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path, 4000, SYSTEM_CLOCK)
    audit.start()
    for number in range(200):
        audit.record({"event": "denied", "number": number, "name": "line\nbreak"})
    audit.stop()
    files = sorted(tmp_path.iterdir())
    assert len(files) == FILES_KEPT
    assert sum(path.stat().st_size for path in files) <= 4000
    lines = [json.loads(line) for line in (tmp_path / FILE_NAME).read_text().splitlines()]
    assert lines[-1]["number"] == 199
    assert lines[-1]["name"] == "line\nbreak"
    assert audit.lost == 0


def test_a_disk_that_fails_is_counted(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "sub", 65536, SYSTEM_CLOCK)
    audit.start()
    (tmp_path / "sub").rmdir()
    audit.record({"event": "denied"})
    audit.stop()
    assert audit.lost == 1


def test_secrets_stay_out() -> None:
    upsertion = scram.ScramCredentialUpsertion(
        name="bob", mechanism=1, iterations=4096, salt=b"CANARY", salted_password=b"CANARY"
    )
    entry = change_entry(
        scram.AlterUserScramCredentialsRequest(upsertions=[upsertion]), context(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    )
    assert entry["detail"] == {"upsertions": [{"name": "bob", "mechanism": 1}]}
    changed = configs.AlterableConfig(name="ssl.key.password", config_operation=0, value="CANARY")
    resource = configs.AlterConfigsResource(resource_type=4, resource_name="0", configs=[changed])
    for request, key in (
        (configs.IncrementalAlterConfigsRequest(resources=[resource]), ApiKey.INCREMENTAL_ALTER_CONFIGS),
        (RenewDelegationTokenRequest(hmac=b"CANARY"), ApiKey.RENEW_DELEGATION_TOKEN),
    ):
        shown = json.dumps(change_entry(request, context(key)), default=str)
        assert "CANARY" not in shown
        assert "User:alice" in shown


def test_outcomes_are_the_errors_of_the_answer() -> None:
    answer = CreateTopicsResponse(topics=[CreatableTopicResult(error_code=29), CreatableTopicResult(error_code=0)])
    assert outcome_of(answer) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert outcome_of(CreateTopicsResponse()) == ["NONE"]
