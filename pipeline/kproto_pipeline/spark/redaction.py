"""Extends Spark's redaction patterns by the secrets in the options of the source and the sink.

Spark redacts options whose names look like a password, a secret or a token. Spark does not redact
an option with a private key, because such an option has another name. A Spark Connect server also
stores the text of each request. Without the patterns of this module, plans, web pages and event
logs would show such secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["PATTERNS", "add_pattern", "set_redaction_patterns"]

#: Matches a secret option in the text of an SQL statement, from its name on. A Spark Connect
#: request has the statement between double quotes, with escaped quotes: there the pattern hides the
#: rest of the statement, because the end of a value is not certain. Otherwise it hides the value.
_SQL_OPTION: Final = (
    r"""(?i:kafka\.(?:sasl|ssl)\.[\w.-]*+(?:\\*+['"`])?(?:\s|\\[nrt]|=)*+r?"""
    r"""(?:\\++['"](?:[^"\\]|\\.)*+|'(?:[^'\\]|\\.|'')*+'?|"(?:[^"\\]|\\.|"")*+"?))"""
)

#: Matches a secret option in the parsed plan of CREATE TABLE, which Spark prints without redaction,
#: as `optionlist((name,value), …)`. Hides the rest of this plan, because the end of a value is not
#: certain: up to the heading of the next plan, such as `== Analyzed Logical Plan ==`.
_PARSED_OPTION: Final = (
    r"\((?i:kafka\.(?:sasl|ssl)\.)[\w.-]*+,[^\n]*+(?:\n(?!== [\w ]++==\n)[^\n]*+)*+"
)

#: The pattern to add to each Spark setting. The patterns match secret options of a plan by name, by
#: value, and in the text of a Spark Connect request.
PATTERNS: Final[Mapping[str, str]] = {
    "spark.sql.redaction.options.regex": r"(?i:^kafka\.(?:sasl|ssl)\.)|PRIVATE KEY-----",
    "spark.sql.redaction.string.regex": (
        r'(?i:key:\s*"kafka\.(?:sasl|ssl)\.[^"]*"\s*value:\s*"(?:[^"\\]|\\.)*+(?:"|\Z))'
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*"
        f"|{_SQL_OPTION}|{_PARSED_OPTION}"
    ),
}

#: Spark's default patterns; setting the property would replace them.
_DEFAULTS: Final[Mapping[str, str]] = {"spark.sql.redaction.options.regex": "(?i)url"}


def set_redaction_patterns(spark: SparkSession) -> None:
    """Adds `PATTERNS` to the redaction patterns that the Spark session has."""
    for name, pattern in PATTERNS.items():
        current = spark.conf.get(name, None) or _DEFAULTS.get(name, "")
        spark.conf.set(name, add_pattern(current, pattern))


def add_pattern(current: str, pattern: str) -> str:
    """Returns a pattern that matches what `current` or `pattern` matches.

    Returns `current` if it contains `pattern` already.
    """
    if pattern in current:
        return current
    return f"(?:{current})|(?:{pattern})" if current else pattern
