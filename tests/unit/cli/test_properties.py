"""Tests `-X` and `--properties` of `kproto proxy` and `kproto fuzz --broker`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from kproto.cli import main
from kproto.cli.properties import add_properties
from kproto.cli.read_properties import properties_from_options
from kproto.security import Plain, Tls
from kproto.security.properties import ClientProperties
from kproto.wire.errors import ConfigurationError


def given(*arguments: str) -> ClientProperties:
    parser = argparse.ArgumentParser()
    add_properties(parser)
    return properties_from_options(parser.parse_args(arguments))


def test_a_file_and_single_properties(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.servers=b:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        "sasl.username=alice\nsasl.password=hunter2\n"
    )
    assert given() == ClientProperties(None)
    assert given("--properties", str(path)).settings == {
        "tls": True,
        "sasl": Plain("alice", "hunter2"),
    }
    found = given("--properties", str(path), "-X", "sasl.password= a=b", "-Xssl.ca.location=ca.pem")
    assert found.settings == {"tls": Tls(ca=Path("ca.pem")), "sasl": Plain("alice", " a=b")}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-X", "hunter2"], "^-X must be NAME=VALUE"),
        (["-X", "sasl.pasword=hunter2"], "no client of Kafka has a property 'sasl.pasword'"),
        (["-X", "=hunter2"], "a name that no client of Kafka has"),
        (["--properties", "/no/such/file"], "cannot read the properties of '/no/such/file'"),
    ],
)
def test_errors_do_not_quote_values(arguments: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        given(*arguments)
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ["proxy", "127.0.0.1:0", "127.0.0.1:1"],
        ["fuzz", "--broker", "127.0.0.1:1"],
        ["fuzz", "--command", "false"],
    ],
)
def test_a_command_ends_with_one_line(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "-X", "sasl.pasword=hunter2"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("kproto: error: ")
    assert said.count("\n") == 1
    assert "hunter" not in said
