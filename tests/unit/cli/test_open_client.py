"""Tests how a command finds its cluster: arguments, files, contexts and the environment."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from kproto.cli.connection import add_connection
from kproto.cli.open_client import properties_of
from kproto.wire.errors import ConfigurationError

CONTEXTS = """
[prod]
bootstrap.servers = "prod:9093"
security.protocol = "SSL"
properties = "prod.properties"

[dev]
"bootstrap.servers" = "dev:9092"
"enable.idempotence" = false
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "kproto"
    folder.mkdir()
    (folder / "contexts.toml").write_text(CONTEXTS)
    (folder / "prod.properties").write_text("security.protocol=PLAINTEXT\nacks=all\n")
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def properties(environment: dict[str, str], *words: str) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    add_connection(parser)
    return properties_of(parser.parse_args(words), environment)


def test_default_is_the_local_broker() -> None:
    assert properties({}) == {"client.id": "kproto-cli", "bootstrap.servers": "localhost:9092"}


def test_context_has_properties_and_a_file(environment: dict[str, str]) -> None:
    assert properties(environment, "--context", "prod") == {
        "client.id": "kproto-cli",
        "bootstrap.servers": "prod:9093",
        "security.protocol": "SSL",
        "acks": "all",
    }
    assert properties(environment, "--context", "dev")["enable.idempotence"] == "false"


@pytest.mark.parametrize("value", ["5", "true", "[1]"])
def test_bootstrap_servers_of_a_context_must_be_text(tmp_path: Path, value: str) -> None:
    (tmp_path / "kproto").mkdir()
    (tmp_path / "kproto" / "contexts.toml").write_text(f"[a]\nbootstrap.servers = {value}\n")
    with pytest.raises(ConfigurationError, match=r"bootstrap\.servers of the context is"):
        properties({"XDG_CONFIG_HOME": str(tmp_path)}, "--context", "a")


def test_arguments_override_the_context_and_the_environment(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nlinger.ms=1\n")
    environment |= {"KPROTO_BOOTSTRAP": "env:1", "KPROTO_PROPERTIES": str(file)}
    found = properties(environment)
    assert (found["bootstrap.servers"], found["linger.ms"]) == ("env:1", "1")
    found = properties(environment, "--context", "dev", "-X", "linger.ms=2")
    assert (found["bootstrap.servers"], found["linger.ms"]) == ("dev:9092", "2")
    found = properties(environment, "--context", "dev", "-b", "given:1")
    assert found["bootstrap.servers"] == "given:1"


def test_unknown_context_names_the_known_ones(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"has no context pord; it has prod"):
        properties(environment, "--context", "pord")


def test_missing_or_invalid_contexts_are_errors(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        properties({"XDG_CONFIG_HOME": str(tmp_path / "none")}, "--context", "a")
    (tmp_path / "kproto" / "contexts.toml").write_text("[a")
    with pytest.raises(ConfigurationError, match="is no valid TOML"):
        properties(environment, "--context", "a")
