"""The audit log: bounded files, and entries that can hold no secret."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.base.clock import SYSTEM_CLOCK
from odradek.broker.api.audit_entries import change_entry, record_outcome
from odradek.broker.security.audit_log import FILE_NAME, FILES_KEPT, REFUSED_FILE_NAME, AuditLog
from odradek.broker.security.principal import KafkaPrincipal
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import alter_user_scram_credentials as scram
from odradek.protocol.messages import incremental_alter_configs as configs
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasResponse, EntityData, EntryResult
from odradek.protocol.messages.create_topics import CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from odradek.protocol.messages.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.schema import Response

ELECTED = ReplicaElectionResult(topic="t", partition_result=[PartitionResult()])
NOT_ELECTED = ReplicaElectionResult(topic="t", partition_result=[PartitionResult(error_code=84)])


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
    audit.record_change({"event": "change", "name": "line\nbreak"})
    for number in range(200):
        audit.record_refusal({"event": "denied", "number": number, "name": "line\nbreak"})
    audit.stop()
    files = sorted(tmp_path.iterdir())
    assert len(files) == FILES_KEPT + 1
    assert sum(path.stat().st_size for path in files) <= 4000
    lines = [json.loads(line) for line in (tmp_path / REFUSED_FILE_NAME).read_text().splitlines()]
    assert lines[-1]["number"] == 199
    assert lines[-1]["name"] == "line\nbreak"
    (change,) = map(json.loads, (tmp_path / FILE_NAME).read_text().splitlines())
    assert change["event"] == "change", "refusals push out no change"
    assert audit.lost == 0


def test_a_disk_that_fails_is_counted(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "sub", 65536, SYSTEM_CLOCK)
    audit.start()
    (tmp_path / "sub").rmdir()
    audit.record_refusal({"event": "denied"})
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


DENIED, DONE = CreatableTopicResult(error_code=29), CreatableTopicResult(configs=[CreatableTopicConfigs(name="x")])


@pytest.mark.parametrize(
    ("answer", "errors", "file"),
    [
        (CreateTopicsResponse(topics=[DONE]), ["NONE"], FILE_NAME),
        (CreateTopicsResponse(topics=[DENIED, DONE]), ["TOPIC_AUTHORIZATION_FAILED"], FILE_NAME),
        (CreateTopicsResponse(topics=[DENIED]), ["TOPIC_AUTHORIZATION_FAILED"], REFUSED_FILE_NAME),
        (CreateTopicsResponse(), ["NONE"], REFUSED_FILE_NAME),
        (DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(error_code=31)]), None, REFUSED_FILE_NAME),
        (AlterClientQuotasResponse(entries=[EntryResult(entity=[EntityData(entity_type="user")])]), None, FILE_NAME),
        (ExpireDelegationTokenResponse(error_code=62), ["DELEGATION_TOKEN_NOT_FOUND"], REFUSED_FILE_NAME),
        (ExpireDelegationTokenResponse(), ["NONE"], FILE_NAME),
        (ElectLeadersResponse(error_code=31), None, REFUSED_FILE_NAME),
        (ElectLeadersResponse(replica_election_results=[ELECTED]), None, FILE_NAME),
        (ElectLeadersResponse(replica_election_results=[NOT_ELECTED]), None, REFUSED_FILE_NAME),
    ],
)
def test_what_was_done_and_what_was_not_are_kept_apart(
    tmp_path: Path, answer: Response, errors: list[str] | None, file: str
) -> None:
    audit = AuditLog(tmp_path, 4000, SYSTEM_CLOCK)
    audit.start()
    record_outcome(audit, {"event": "change"}, answer)
    audit.stop()
    (path,) = tmp_path.iterdir()
    assert path.name == file
    if errors is not None:
        assert json.loads(path.read_text())["errors"] == errors
