"""Extends Spark's redaction patterns by the secrets in the options of the source and the sink.

Spark itself redacts options whose names look like a password, a secret or a token. A private key in
an option has another name, and a Spark Connect server keeps each request as text; without these
patterns plans, web pages and event logs would show both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["PATTERNS", "add_pattern", "set_redaction_patterns"]

#: Spark setting -> pattern: options of a plan, matched by name or value; and an option with its
#: value in the text of a request to Connect.
PATTERNS: Final[Mapping[str, str]] = {
    "spark.sql.redaction.options.regex": r"(?i:^kafka\.(?:sasl|ssl)\.)|PRIVATE KEY-----",
    "spark.sql.redaction.string.regex": (
        r'(?i:key:\s*"kafka\.(?:sasl|ssl)\.[^"]*"\s*value:\s*"(?:[^"\\]|\\.)*+(?:"|\Z))'
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*"
    ),
}

#: Spark's defaults, which a setting would replace.
_DEFAULTS: Final[Mapping[str, str]] = {"spark.sql.redaction.options.regex": "(?i)url"}


def set_redaction_patterns(spark: SparkSession) -> None:
    """Adds the patterns to those that the session has."""
    for name, pattern in PATTERNS.items():
        current = spark.conf.get(name, None) or _DEFAULTS.get(name, "")
        spark.conf.set(name, add_pattern(current, pattern))


def add_pattern(current: str, pattern: str) -> str:
    """Returns a pattern that matches `current` or `pattern`; `current` if that contains it."""
    if pattern in current:
        return current
    return f"(?:{current})|(?:{pattern})" if current else pattern
