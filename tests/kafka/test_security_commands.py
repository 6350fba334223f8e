"""Tests `kproto acls`, `users`, `quotas` and `tokens` on real brokers with SASL and ACLs."""

from __future__ import annotations

import base64
import time
import uuid
from pathlib import Path

import pytest

from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run, runner
from tools.kafka.secured import SecuredKafka

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]


def properties(kafka: SecuredKafka, folder: Path, user: str, password: str) -> str:
    """Returns the path of a file with the properties of a user."""
    file = folder / f"{user}.properties"
    certificates = folder / "ca.pem"
    certificates.write_text(kafka.authority.pem)
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={certificates}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{user}" password="{password}";\n'
    )
    return str(file)


@pytest.fixture
def kproto(
    secured: SecuredKafka, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Run:
    """Returns the function that runs a command as the administrator."""
    file = properties(secured, tmp_path, "admin", secured.passwords["admin"])
    run = runner(secured.bootstrap["SASL_SSL"], capsysbinary, tmp_path)
    return lambda *words, stdin=None: run(*words, "--properties", file, stdin=stdin)


def test_acls_are_added_listed_and_removed(kproto: Run) -> None:
    name = f"acl-{uuid.uuid4().hex}"
    made = rows_of(kproto, "acls", "add", "allow", "User:bob", "read,describe", "topic", f"{name}*")
    assert [row["operation"] for row in made] == ["describe", "read"]
    assert {row["name"] for row in made} == {f"{name}*"}
    assert rows_of(kproto, "acls", "list", "--name", f"{name}*") == made
    assert rows_of(kproto, "acls", "list", "--name", f"{name}-1", "--match") == made
    assert rows_of(kproto, "acls", "list", "--name", f"{name}*", "--operation", "read") == made[1:]
    refused = kproto("acls", "remove", "--name", f"{name}*")
    assert "--yes is needed" in refused.err[0]
    assert rows_of(kproto, "acls", "remove", "--name", f"{name}*", "--yes") == made
    assert kproto("acls", "remove", "--name", f"{name}*", "--yes").code == 1
    wrong = kproto("acls", "add", "allow", "User:bob", "raed", "topic", name)
    assert "'raed' is no operation: use all, read" in wrong.err[0]


def test_user_is_set_and_deleted(
    kproto: Run, secured: SecuredKafka, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    user = f"user-{uuid.uuid4().hex[:8]}"
    secret = tmp_path / "secret"
    secret.write_text("first line\nsecond line\n")
    command = ["users", "set", user, "--password-file", str(secret), "--iterations", "8192"]
    assert kproto(*command).code == 0
    (row,) = rows_of(kproto, "users", "list", user)
    assert row == {"user": user, "mechanism": "SCRAM-SHA-512", "iterations": 8192}
    own = properties(secured, tmp_path, user, "first line")
    run = runner(secured.bootstrap["SASL_SSL"], capsysbinary, tmp_path)
    assert run("cluster", "--properties", own).code == 0
    assert kproto("users", "delete", user, "--yes").code == 0
    assert "RESOURCE_NOT_FOUND" in kproto("users", "list", user).err[0]
    secret.write_text("\n")
    assert "the password is empty" in kproto(*command).err[0]


def test_quotas_are_set_and_removed(kproto: Run) -> None:
    user = f"quota-{uuid.uuid4().hex}"
    entity = ["--user", user, "--client-id", "default"]
    assert kproto("quotas", "set", *entity, "producer_byte_rate=1024", "--dry-run").code == 0
    assert rows_of(kproto, "quotas", "list", *entity) == []
    quotas = ["producer_byte_rate=1024", "request_percentage=50.5"]
    assert kproto("quotas", "set", *entity, *quotas).code == 0
    row = {"user": user, "client_id": "default", "ip": None}
    assert rows_of(kproto, "quotas", "list", "--user", user) == [
        {**row, "quota": "producer_byte_rate", "value": 1024.0},
        {**row, "quota": "request_percentage", "value": 50.5},
    ]
    assert kproto("quotas", "unset", *entity, "producer_byte_rate", "request_percentage").code == 0
    assert rows_of(kproto, "quotas", "list", "--user", user) == []
    assert "is no NAME=NUMBER" in kproto("quotas", "set", *entity, "request_percentage=x").err[0]


def tokens_until(kproto: Run, token: object, *, there: bool) -> dict[object, dict[str, object]]:
    """Returns the tokens once the brokers have applied the change of a token."""
    end = time.monotonic() + 60
    while True:
        listed = {row["token_id"]: row for row in rows_of(kproto, "tokens", "list")}
        if (token in listed) == there:
            return listed
        assert time.monotonic() < end


def test_token_is_created_renewed_and_ended(kproto: Run, tmp_path: Path) -> None:
    (token,) = rows_of(kproto, "tokens", "create", "--renewer", "User:bob", "--lifetime", "1h")
    hmac = str(token["hmac"])
    assert base64.b64decode(hmac)
    listed = tokens_until(kproto, token["token_id"], there=True)
    assert listed[token["token_id"]]["renewers"] == ["User:bob"]
    assert "hmac" not in listed[token["token_id"]]
    file = tmp_path / "hmac"
    file.write_text(f"{hmac}\n")
    renewed = rows_of(kproto, "tokens", "renew", "--hmac-file", str(file), "--period", "30m")
    assert isinstance(renewed[0]["expires_ms"], int)
    assert kproto("tokens", "expire", "--hmac-file", str(file), "--yes").code == 0
    tokens_until(kproto, token["token_id"], there=False)
