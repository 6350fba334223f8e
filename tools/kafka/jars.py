"""Fetches the jars of a Kafka release once, into `.cache/kafka/<version>/jars`."""

from __future__ import annotations

import re
from pathlib import Path

from tools.setup.maven import MavenError, fetch_jars

from .old_releases import needs_zookeeper, old_release

__all__ = ["CACHE", "KafkaJarsError", "resolve_jars"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "kafka"
POM_TEMPLATE = Path(__file__).with_name("pom.xml.template")
OLD_POM_TEMPLATE = Path(__file__).with_name("old_pom.xml.template")

DEPENDENCY = """\
    <dependency>
      <groupId>{0}</groupId>
      <artifactId>{1}</artifactId>
      <version>{2}</version>
      <exclusions>
        <exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId></exclusion>
      </exclusions>
    </dependency>"""

SLF4J_VERSION = "1.7.36"
"""The version of the logging interface against which both 3.9 and 4.4 are compiled."""


class KafkaJarsError(RuntimeError):
    """The jars are missing and cannot be fetched."""


def resolve_jars(version: str) -> Path:
    """Returns the folder with all jars of a broker of this version; fetches them if missing.

    Safe if several processes call it at once. Raises `KafkaJarsError`.
    """
    if not re.fullmatch(r"\d+(\.\d+)+", version):
        raise KafkaJarsError(f"{version!r} is no Kafka version: name one such as 4.4.0")
    template, filled = POM_TEMPLATE, {}
    if needs_zookeeper(version):
        release = old_release(version)
        further = (DEPENDENCY.format(*each.split(":")) for each in release.further)
        template = OLD_POM_TEMPLATE
        filled = {"scala": release.scala, "further": "\n".join(further)}
    try:
        return fetch_jars(
            CACHE / version,
            template,
            name=f"Kafka {version}",
            sign="kafka_2.1*.jar",
            otherwise="name a running broker in KPROTO_BOOTSTRAP",
            version=version,
            slf4j_version=SLF4J_VERSION,
            **filled,
        )
    except MavenError as error:
        raise KafkaJarsError(str(error)) from error
