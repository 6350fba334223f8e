"""Implements the SASL mechanism AWS_MSK_IAM, which authenticates AWS keys with Amazon MSK.

    export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…
    python examples/aws_msk_iam.py b-1.NAME.amazonaws.com:9098 us-east-1

The client sends one token: a JSON object with the parts of a presigned URL of SigV4, for the action
kafka-cluster:Connect at the broker of the connection. The broker answers with a JSON object. The
program needs only the standard library. It implements
https://github.com/aws/aws-msk-iam-auth#details and
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import hmac
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import kproto

EMPTY_PAYLOAD = hashlib.sha256(b"").hexdigest()


def presigned(
    *,
    service: str,
    region: str,
    host: str,
    path: str,
    access_key: str,
    secret_key: str,
    now: dt.datetime,
    lives_s: int,
    session_token: str | None = None,
    parameters: Mapping[str, str] | None = None,
    payload_hash: str = EMPTY_PAYLOAD,
) -> dict[str, str]:
    """Returns the query parameters of a GET signed by SigV4, including X-Amz-Signature."""
    moment = now.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    signed = {
        **(parameters or {}),
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{access_key}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": str(lives_s),
        "X-Amz-SignedHeaders": "host",
    }
    if session_token:
        signed["X-Amz-Security-Token"] = session_token
    query = "&".join(
        f"{name}={value}"
        for name, value in sorted(
            (quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in signed.items()
        )
    )
    canonical = "\n".join(("GET", path, query, f"host:{host}", "", "host", payload_hash))
    to_sign = "\n".join(
        ("AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest())
    )
    key = f"AWS4{secret_key}".encode()
    for part in (moment[:8], region, service, "aws4_request", to_sign):
        key = hmac.digest(key, part.encode(), "sha256")
    return {**signed, "X-Amz-Signature": key.hex()}


class MskIamExchange:
    """One SASL exchange: sends the signed token, then checks the broker's answer."""

    mechanism = "AWS_MSK_IAM"

    def __init__(self, token: bytes) -> None:
        self._token = token
        self.done = False

    def first(self) -> bytes:
        """Returns the signed token."""
        return self._token

    def next(self, challenge: bytes) -> bytes:
        """Checks the broker's answer, which is empty only if the broker rejects the client.

        Raises AuthenticationError for an empty answer.
        """
        if not challenge:
            raise kproto.AuthenticationError("AWS_MSK_IAM: the broker's answer is empty")
        self.done = True
        return b""


@dataclass(frozen=True)
class MskIam:
    """Settings of AWS_MSK_IAM for one pair of keys; pass them to a client as `sasl`."""

    region: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    lives_s: int = 900

    mechanism = "AWS_MSK_IAM"
    readable = True

    async def exchange(self, host: str) -> MskIamExchange:
        """Returns a new exchange whose token is signed now, for the broker at `host`."""
        signed = presigned(
            service="kafka-cluster",
            region=self.region,
            host=host,
            path="/",
            access_key=self.access_key,
            secret_key=self.secret_key,
            now=dt.datetime.now(dt.UTC),
            lives_s=self.lives_s,
            session_token=self.session_token,
            parameters={"Action": "kafka-cluster:Connect"},
        )
        token = {
            "version": "2020_10_22",
            "host": host,
            "user-agent": f"kproto/{kproto.__version__}",
            **{name.lower(): value for name, value in signed.items()},
        }
        return MskIamExchange(json.dumps(token, separators=(",", ":")).encode())


async def main() -> None:
    """Prints the brokers of the cluster."""
    bootstrap, region = sys.argv[1:]
    sasl = MskIam(
        region,
        os.environ["AWS_ACCESS_KEY_ID"],
        os.environ["AWS_SECRET_ACCESS_KEY"],
        os.environ.get("AWS_SESSION_TOKEN"),
    )
    async with kproto.Client(bootstrap, tls=True, sasl=sasl) as client:
        for node, address in sorted(client.cluster.brokers.items()):
            print(node, address)


if __name__ == "__main__":
    if len(sys.argv) != 3 or "AWS_ACCESS_KEY_ID" not in os.environ:
        sys.exit(__doc__)
    try:
        asyncio.run(main())
    except kproto.KprotoError as error:
        sys.exit(str(error))
    except KeyError as error:
        sys.exit(f"the environment lacks {error}")
