"""Restates errors of the client with the names of the data source's options.

The client's errors name its settings (`delivery_timeout_ms`), properties (`delivery.timeout.ms`)
and methods. A user of the data source sets the option `kafka.delivery.timeout.ms`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kproto.security.properties import known_names
from kproto.security.property_table import ROWS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kproto.wire.errors import KprotoError

__all__ = ["PREFIX", "name_options", "option_text"]

#: The prefix of an option that sets a client property; the rest of the option's name is the
#: property.
PREFIX: Final = "kafka."

#: Parts of error messages for which no option exists, and their replacements.
_WORDS: Final = (
    (
        (
            "metadata requests create no topics: see Client.create_topics, or set "
            "allow_auto_create_topics"
        ),
        "create the topic first",
    ),
    (" (unknown_topic_wait_ms)", ""),
    (" (metadata_wait_ms)", ""),
)

#: The settings that options without the prefix set.
_OWN: Final = {"broker_version": "brokerVersion"}

#: A name of a setting or of a property, outside a longer name.
_NAME: Final = re.compile(r"(?<![\w.\-/])[a-z]+(?:[._][a-z0-9]+)+(?![\w\-/]|\.\w)")

#: The client's words for an unknown property.
_UNKNOWN: Final = re.compile(r"no client of Kafka has a property '([\w.\-]+)'")

#: By the client's words for a part of `tls`: the properties that set this part.
_OF_TLS: Final = {
    "tls: ca": (
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.ca.pem",
        "ssl.ca.location",
    ),
    "tls: certificate": (
        "ssl.keystore.certificate.chain",
        "ssl.keystore.location",
        "ssl.certificate.pem",
        "ssl.certificate.location",
    ),
    "tls: key": ("ssl.keystore.key", "ssl.keystore.location", "ssl.key.pem", "ssl.key.location"),
}
_TLS: Final = re.compile(r"tls: (?:ca|certificate|key)(?= \()")

#: An option, followed by the same option in parentheses.
_TWICE: Final = re.compile(r"(kafka\.[\w.]+) \(\1\)")


def option_text(text: str, properties: Collection[str] = ()) -> str:
    """Returns the text of an error with the names of options in place of the client's names.

    `properties` are the properties that are set.
    """
    for of_client, words in _WORDS:
        text = text.replace(of_client, words)
    text = _UNKNOWN.sub(rf"option {PREFIX}\1 is no property of any client of Kafka", text)
    text = _TLS.sub(lambda found: _tls_option(found[0], properties), text)
    options = _options()
    text = _NAME.sub(lambda found: options.get(found[0], found[0]), text)
    return _TWICE.sub(r"\1", text)


def name_options(error: KprotoError, properties: Collection[str]) -> None:
    """Changes the text of an error as `option_text` does."""
    if error.args and isinstance(error.args[0], str):
        error.args = (option_text(error.args[0], properties), *error.args[1:])


def _tls_option(part: str, properties: Collection[str]) -> str:
    """Returns the option that sets a part of `tls`; `part` itself if no option is known to."""
    return next((f"option {PREFIX}{name}" for name in _OF_TLS[part] if name in properties), part)


@lru_cache(maxsize=1)
def _options() -> Mapping[str, str]:
    """Maps each setting and each property of the client to its option."""
    properties = {name: PREFIX + name for name in known_names()}
    settings = {row.name: PREFIX + row.names[0] for row in reversed(ROWS) if "_" in row.name}
    return properties | settings | _OWN
