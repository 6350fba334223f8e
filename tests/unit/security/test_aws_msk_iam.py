"""Tests the example of a user's own mechanism, AWS MSK IAM, with AWS's signature example."""

from __future__ import annotations

import datetime as dt
import json
import runpy
import subprocess
import sys
from typing import Any

import pytest

from kproto import AuthenticationError, Client
from tests.support.environment import ROOT
from tests.unit.client.secured_broker import SecuredBroker

PROGRAM = ROOT / "examples" / "aws_msk_iam.py"
EXAMPLE = runpy.run_path(str(PROGRAM))
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


def test_the_signature_of_aws_own_example() -> None:
    """The example is on the page "Authenticating Requests: Using Query Parameters" of Amazon S3."""
    signed = EXAMPLE["presigned"](
        service="s3",
        region="us-east-1",
        host="examplebucket.s3.amazonaws.com",
        path="/test.txt",
        access_key="AKIAIOSFODNN7EXAMPLE",
        secret_key=SECRET,
        now=dt.datetime(2013, 5, 24, tzinfo=dt.UTC),
        lives_s=86_400,
        payload_hash="UNSIGNED-PAYLOAD",
    )
    assert signed["X-Amz-Signature"] == (
        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


class Server:
    """Answers a token as Amazon's brokers do: accepts or refuses it."""

    mechanism = "AWS_MSK_IAM"
    username: str | None = None

    def __init__(self, answer: bytes = b'{"version":"2020_10_22","request-id":"1"}') -> None:
        self.answer = answer
        self.done = False
        self.seen: list[dict[str, str]] = []

    def next(self, response: bytes) -> bytes:
        self.seen.append(json.loads(response))
        self.done = True
        return self.answer


def sasl(**others: Any) -> Any:
    return EXAMPLE["MskIam"]("eu-west-1", "AKIAEXAMPLE", SECRET, **others)


async def test_the_mechanism() -> None:
    server = Server()
    async with (
        SecuredBroker(mechanisms={"AWS_MSK_IAM": lambda: server}) as broker,
        Client(broker.bootstrap, sasl=sasl(session_token="session")),
    ):
        pass
    (token,) = server.seen[:1]
    assert token["host"] == "127.0.0.1"
    assert token["action"] == "kafka-cluster:Connect"
    assert token["x-amz-credential"].startswith("AKIAEXAMPLE/2")
    assert token["x-amz-credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert token["x-amz-security-token"] == "session"
    assert len(token["x-amz-signature"]) == 64
    assert set(token) == {
        "version", "host", "user-agent", "action", "x-amz-algorithm", "x-amz-credential",
        "x-amz-date", "x-amz-expires", "x-amz-signedheaders", "x-amz-security-token",
        "x-amz-signature",
    }  # fmt: skip
    assert SECRET not in json.dumps(token) + repr(sasl())


async def test_an_answer_that_is_none() -> None:
    async with SecuredBroker(mechanisms={"AWS_MSK_IAM": lambda: Server(b"")}) as broker:
        client = Client(broker.bootstrap, sasl=sasl())
        with pytest.raises(AuthenticationError, match="answer is empty"):
            await client.refresh([])
        await client.close()


def test_without_arguments_it_says_how() -> None:
    run = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "AWS_ACCESS_KEY_ID=" in run.stderr
    assert "Traceback" not in run.stderr
