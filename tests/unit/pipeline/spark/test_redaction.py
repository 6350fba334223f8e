"""Tests the redaction patterns that kproto adds in Spark: they hide the secrets of options.

Patterns that Spark already has must remain.
"""

from __future__ import annotations

import re

import pytest
from kproto_pipeline.spark.redaction import PATTERNS, add_pattern

OPTIONS = re.compile(PATTERNS["spark.sql.redaction.options.regex"])
TEXT = re.compile(PATTERNS["spark.sql.redaction.string.regex"])

REQUEST = r"""
options {
  key: "kafka.bootstrap.servers"
  value: "host:9092"
}
options {
  key: "kafka.sasl.jaas.config"
  value: "required password=\"one\";"
}
options {
  key: "KAFKA.SSL.keystore.key"
  value: "-----BEGIN EC PRIVATE KEY-----\ntwo\n-----END EC PRIVATE KEY-----"
}
options {
  key: "subscribe"
  value: "topic"
}
"""


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("kafka.sasl.jaas.config", True),
        ("Kafka.Ssl.Keystore.Key", True),
        ("-----BEGIN EC PRIVATE KEY-----\n", True),
        ("kafka.bootstrap.servers", False),
        ("subscribe", False),
        ("about-kafka.ssl.", False),
    ],
)
def test_options_are_hidden_by_name_or_value(text: str, hidden: bool) -> None:
    assert bool(OPTIONS.search(text)) is hidden


def test_request_text_keeps_options_without_secrets() -> None:
    hidden = TEXT.sub("*", REQUEST)
    assert "one" not in hidden
    assert "two" not in hidden
    assert hidden.count("*") == 2
    assert 'value: "host:9092"' in hidden
    assert 'value: "topic"' in hidden


def test_truncated_request_is_redacted_to_its_end() -> None:
    cut = REQUEST[: REQUEST.index("one") + 2]
    assert TEXT.sub("*", cut).endswith("options {\n  *")


def test_private_key_outside_of_options_is_redacted() -> None:
    assert TEXT.sub("*", "x -----BEGIN PRIVATE KEY-----\nabc\n-----END") == "x *-----END"


def test_existing_patterns_are_kept() -> None:
    both = add_pattern("url", "secret")
    assert re.search(both, "a url")
    assert re.search(both, "a secret")
    assert add_pattern(both, "secret") == both
    assert add_pattern("", "secret") == "secret"
