"""What Spark must not print of the options of a source or a sink, in its own words.

Owns the patterns, and how a session is told. Spark hides by itself what looks like a password, a
secret or a token. A private key that stands in an option does not look like one, and a server of
Spark Connect keeps each request as text; both are shown in plans, pages and event logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["PATTERNS", "add_pattern", "set_redaction_patterns"]

#: What is hidden, by the setting of Spark that says so: options of a plan, matched by name or
#: value; and in the text of a request to Connect an option with its value.
PATTERNS: Final[Mapping[str, str]] = {
    "spark.sql.redaction.options.regex": r"(?i:^kafka\.(?:sasl|ssl)\.)|PRIVATE KEY-----",
    "spark.sql.redaction.string.regex": (
        r'(?i:key:\s*"kafka\.(?:sasl|ssl)\.[^"]*"\s*value:\s*"(?:[^"\\]|\\.)*+(?:"|\Z))'
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*"
    ),
}

#: What Spark hides in options where nobody has said anything; a setting replaces it.
_DEFAULTS: Final[Mapping[str, str]] = {"spark.sql.redaction.options.regex": "(?i)url"}


def set_redaction_patterns(spark: SparkSession) -> None:
    """Have this session hide the secrets of our options, besides what it hides already."""
    for name, pattern in PATTERNS.items():
        said = spark.conf.get(name, None) or _DEFAULTS.get(name, "")
        spark.conf.set(name, add_pattern(said, pattern))


def add_pattern(said: str, pattern: str) -> str:
    """A pattern that matches what `said` does, and `pattern`; as it was if that is in it."""
    if pattern in said:
        return said
    return f"(?:{said})|(?:{pattern})" if said else pattern
