"""`python -m tools.properties.page` writes the table of docs/reference/client-properties.md."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kproto.security.property_table import IGNORED_PREFIXES, ROWS, PropertyMapping

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "client-properties.md"
NAMES = ROOT / "kproto" / "security" / "client_names.toml"

BEGIN = "<!-- made by python -m tools.properties.page -->\n"
END = "<!-- up to here -->\n"

HEAD = "| Kafka's Java clients | librdkafka | kproto |\n|---|---|---|\n"

PARTS = {
    "bootstrap": "the first argument of `Client`",
    "settings": "`ClientSettings({})`",
    "producer": "`client.producer({})`",
    "consumer": "`client.consumer({})`",
    "group": "`client.consumer({})`",
    "share": "`client.share_consumer({})`",
}
"""By `PropertyMapping.part`: the code that sets the setting. TLS and SASL have their own tables."""

TLS = {
    "truststore": "ca", "truststore_pem": "ca", "ca": "ca", "ca_pem": "ca",
    "keystore": "certificate", "keystore_chain_pem": "certificate", "certificate": "certificate",
    "certificate_pem": "certificate", "keystore_key_pem": "key", "key": "key", "key_pem": "key",
    "key_password": "key_password", "verify": "verify", "check_hostname": "check_hostname",
}  # fmt: skip
"""By name of a TLS setting: the argument of `Tls` that it sets."""

SASL = {
    "username": "`Plain`, `ScramSha256`, `ScramSha512`: `username`",
    "password": "`Plain`, `ScramSha256`, `ScramSha512`: `password`",
    "token_url": "`ClientCredentials(token_url)`",
    "client_id": "`ClientCredentials(client_id)`",
    "client_secret": "`ClientCredentials(client_secret)`",
    "scope": "`ClientCredentials(scope)`",
    "url_encoded": "`ClientCredentials(url_encoded)`",
    "method": "`oidc`, or `default`; if the URL is set, a token is requested there",
}
"""By name of a SASL setting: the argument that it sets."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page. With --check, only compares it: the exit code is 1 if it differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.properties.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and do not write")
    options = parser.parse_args(arguments)
    before = PAGE.read_text(encoding="utf-8")
    after = with_table(before)
    if not options.check:
        PAGE.write_text(after, encoding="utf-8")
    same = before == after
    print(f"{PAGE}: {'is up to date' if same else 'differs' if options.check else 'written'}")
    return 1 if options.check and not same else 0


def with_table(page: str) -> str:
    """Returns the page with the new table between its two marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + table() + END + tail


def table() -> str:
    """Returns the table, then a sentence with the number of accepted names that have no effect."""
    lists = tomllib.loads(NAMES.read_text(encoding="utf-8"))
    java, librdkafka = set(lists["java"]["names"]), set(lists["librdkafka"]["names"])
    rows = "".join(_line(row, java, librdkafka) for row in ROWS)
    unused = len((java | librdkafka) - {name for row in ROWS for name in row.names})
    prefixes = " or ".join(f"`{prefix}`" for prefix in IGNORED_PREFIXES)
    return (
        f"{HEAD}{rows}\nkproto also accepts {unused} names that have no effect: all other"
        " properties of the producer, the\nconsumer and the admin client of Kafka"
        f" {lists['java']['version']}, and of librdkafka {lists['librdkafka']['version']};\nand"
        f" every name that begins with {prefixes}.\n"
    )


def _line(row: PropertyMapping, java: set[str], librdkafka: set[str]) -> str:
    columns = (
        _names(name for name in row.names if name in java),
        _names(name for name in row.names if name in librdkafka),
        "; ".join(filter(None, (_here(row), row.meaning))),
    )
    return f"| {' | '.join(columns)} |\n"


def _names(names: Iterator[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _here(row: PropertyMapping) -> str:
    if row.part == "tls" and row.name in TLS:
        return f"`Tls({TLS[row.name]})`"
    if row.part == "sasl":
        return SASL.get(row.name, "")
    return PARTS.get(row.part, "").format(row.name)


if __name__ == "__main__":
    sys.exit(main())
