"""Tests the redaction patterns that kproto adds in Spark: they hide the secrets of options.

Patterns that Spark already has must remain.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from kproto_pipeline.spark.redaction import PATTERNS, add_pattern

from tests.support.environment import ROOT

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


def _request_of(statement: str) -> str:
    """Returns the text of a Spark Connect request with an SQL statement."""
    escaped = re.sub(r"""(["'\\\\])""", r"\\\1", statement).replace("\n", r"\n")
    return f'sql_command {{\n  sql {{\n    query: "{escaped}"\n    plan_id: 7\n  }}\n}}\n'


@pytest.mark.parametrize("wrapped", [_request_of, str], ids=["request", "statement"])
@pytest.mark.parametrize(
    "option",
    [
        """`kafka.sasl.jaas.config` 'username="a" password="hidden";'""",
        """'kafka.sasl.jaas.config' = 'username="a" password=\\'hidden\\';'""",
        """"kafka.sasl.password" "a""hidden\"""",
        """kafka.sasl.jaas.config\n  'it''s hidden'""",
        """KAFKA.SSL.KEY.PASSWORD='hidden'""",
        r"""`kafka.sasl.password` r'a\hidden'""",
    ],
)
def test_value_of_an_sql_option_is_redacted(wrapped: Callable[[str], str], option: str) -> None:
    start = "CREATE TEMPORARY VIEW v USING kproto OPTIONS (`kafka.bootstrap.servers` 'host:9092', "
    hidden = TEXT.sub("*", wrapped(f"{start}{option}, subscribe 'topic')"))
    assert "hidden" not in hidden
    assert "host:9092" in hidden
    assert ("plan_id: 7" in hidden) is (wrapped is _request_of)


def test_sql_inside_of_sql_is_redacted() -> None:
    inner = "CREATE TEMPORARY VIEW v USING kproto OPTIONS (`kafka.sasl.password` \\'hidden\\')"
    assert "hidden" not in TEXT.sub("*", _request_of(f"EXECUTE IMMEDIATE '{inner}'"))


@pytest.mark.parametrize("name", ["kafka.sasl.jaas.config", "KAFKA.SSL.KEY.PASSWORD"])
def test_parsed_plan_of_a_table_is_redacted(name: str) -> None:
    plans = (
        "== Parsed Logical Plan ==\n'CreateTable [columndefinition(value, BinaryType)], "
        "unresolvedtablespec(Some(kproto), optionlist((subscribe,day), "
        f'({name},required\n password="a), (hidden";), (topic,hidden)), None, false)\n'
        "+- 'UnresolvedIdentifier [t], false\n\n"
        "== Analyzed Logical Plan ==\nCreateTable spark_catalog.default.t\n"
    )
    hidden = TEXT.sub("*", plans)
    assert "hidden" not in hidden
    assert "(subscribe,day)" in hidden
    assert hidden.endswith("== Analyzed Logical Plan ==\nCreateTable spark_catalog.default.t\n")


def test_page_has_the_patterns() -> None:
    page = (ROOT / "docs" / "how-to" / "spark-cluster.md").read_text(encoding="utf-8")
    for name, pattern in PATTERNS.items():
        (line,) = [line for line in page.splitlines() if line.startswith(f"    {name} ")]
        assert line.endswith(pattern)


def test_name_without_a_value_is_not_redacted() -> None:
    text = "Options: [kafka.sasl.jaas.config=*********(redacted), subscribe=topic]"
    assert TEXT.sub("*", text) == text


def test_existing_patterns_are_kept() -> None:
    both = add_pattern("url", "secret")
    assert re.search(both, "a url")
    assert re.search(both, "a secret")
    assert add_pattern(both, "secret") == both
    assert add_pattern("", "secret") == "secret"
