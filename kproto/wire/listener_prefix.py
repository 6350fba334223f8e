"""Splits the prefix of an address such as `SASL_SSL://host:port` (KAFKA-10713).

The prefix is a security protocol, or the name of a listener.

Like Kafka's clients, kproto ignores the prefix: settings decide how the client connects.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["prefix_contradiction", "split_prefix"]

#: The prefix that Kafka's clients accept: a security protocol, or any name of a listener.
_PREFIX: Final = re.compile(r"([0-9A-Za-z._%-]+)://")

#: Kafka's security protocols, each with True if it uses TLS, and True if it uses SASL.
_PROTOCOLS: Final = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}


def split_prefix(text: str) -> tuple[str, str]:
    """Splits an address into its prefix ("" if it has none) and the address after `://`."""
    found = _PREFIX.match(text)
    return (found[1], text[found.end() :]) if found is not None else ("", text)


def prefix_contradiction(prefix: str, *, tls: bool, sasl: bool) -> str:
    """Returns how a prefix contradicts the settings of a client; "" if it does not.

    `tls` and `sasl` are True if the client uses them. A prefix that is no security protocol of
    Kafka is the name of a listener, and contradicts no settings.
    """
    wanted = _PROTOCOLS.get(prefix.upper())
    if wanted is None:
        return ""
    faults = [
        f"{'uses' if is_wanted else 'has no'} {name}, and this client "
        f"{'has' if is_set else 'has no'} {setting}"
        for name, setting, is_wanted, is_set in (
            ("TLS", "tls", wanted[0], tls),
            ("SASL", "sasl", wanted[1], sasl),
        )
        if is_wanted is not is_set
    ]
    return "; it ".join(faults)
