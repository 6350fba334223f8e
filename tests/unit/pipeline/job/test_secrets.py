"""Tests that texts of other programs lose the secrets of a job's settings."""

from __future__ import annotations

import pytest
from kproto_pipeline.job import command
from kproto_pipeline.job.errors import SparkError
from kproto_pipeline.job.secrets import REPLACEMENT, without_secrets
from kproto_pipeline.job.settings import JobSettings, OutputSettings

SECRETS = ("s3kret-key", "s3kret-key-longer", "pa55word", "jd8c-token", "-----BEGIN KEY")

SETTINGS = JobSettings(
    {
        "kafka.bootstrap.servers": "host:9092",
        "subscribe": "flights",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "reader",
        "kafka.sasl.password": SECRETS[2],
        "kafka.ssl.keystore.key": SECRETS[4],
        "kafka.security.protocol": "SASL_PLAINTEXT",
    },
    OutputSettings("lake", options={"fs.s3a.session.token": SECRETS[3], "compression": "zstd"}),
    spark={"spark.hadoop.fs.s3a.secret.key": SECRETS[0], "spark.x.access.key": SECRETS[1]},
)


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_replaced(secret: str) -> None:
    text = f"s3a://bucket: 403 for host:9092, reader ({secret}), zstd"
    expected = f"s3a://bucket: 403 for host:9092, reader ({REPLACEMENT}), zstd"
    assert without_secrets(text, SETTINGS) == expected


@pytest.mark.parametrize("verbose", [False, True])
def test_command_prints_no_secret(
    verbose: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise SparkError(f"refused {SECRETS[2]}", f"Traceback\n  refused {SECRETS[0]}")

    monkeypatch.setattr(command, "settings_from", lambda _: SETTINGS)
    monkeypatch.setattr(command, "_run", fail)
    assert command.main(["run", *(["--verbose"] if verbose else [])]) == 1
    found = capsys.readouterr().err
    assert found.endswith(f"kproto-pipeline: error: refused {REPLACEMENT}\n")
    assert ("Traceback" in found) == verbose
    assert not any(secret in found for secret in SECRETS)
