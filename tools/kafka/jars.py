"""The jars of one Kafka release, fetched once by Maven into `.cache/kafka/<version>/jars`.

Knows nothing of how a broker is configured or started.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import string
import subprocess
from pathlib import Path

from tools.setup import java

__all__ = ["CACHE", "KafkaJarsError", "resolve_jars"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "kafka"
POM_TEMPLATE = Path(__file__).with_name("pom.xml.template")

SLF4J_VERSION = "1.7.36"
"""The logging interface that both 3.9 and 4.4 are built against."""

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
"""Pinned: without a version Maven takes whichever its own release prefers."""

RESOLVE_TIMEOUT_S = 900.0
"""About 60 jars and 100 MB, on a slow line."""


class KafkaJarsError(RuntimeError):
    """The jars are not there and cannot be fetched."""


def resolve_jars(version: str) -> Path:
    """Return the folder with all jars of a broker of this version, fetching them when missing.

    Safe in several processes at once. Raises `KafkaJarsError`.
    """
    if not re.fullmatch(r"\d+(\.\d+)+", version):
        raise KafkaJarsError(f"{version!r} is no Kafka version: name one such as 4.4.0")
    folder = CACHE / version
    jars = folder / "jars"
    if jars.is_dir():
        return jars
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            _fetch(version, folder)
    return jars


def _fetch(version: str, folder: Path) -> None:
    """Let Maven copy the jars; the folder gets its final name only when all are there."""
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaJarsError(
            "Maven (mvn) is not on the PATH, and the jars of Kafka "
            f"{version} are not in {folder}: install it (Debian: apt-get install maven; "
            "macOS: brew install maven), or name a running broker in KPROTO_BOOTSTRAP"
        )
    template = string.Template(POM_TEMPLATE.read_text(encoding="utf-8"))
    pom = folder / "pom.xml"
    pom.write_text(
        template.substitute(version=version, slf4j_version=SLF4J_VERSION), encoding="utf-8"
    )
    unfinished = folder / "jars.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    goal = f"{DEPENDENCY_PLUGIN}:copy-dependencies"
    command = [
        maven,
        "--batch-mode",
        "--quiet",
        "--file",
        str(pom),
        goal,
        f"-DoutputDirectory={unfinished}",
        "-DincludeScope=runtime",
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=java.environment(dict(os.environ)),
            timeout=RESOLVE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, java.JavaNotFoundError) as error:
        raise KafkaJarsError(f"Maven could not fetch Kafka {version}: {error}") from error
    if done.returncode != 0 or not list(unfinished.glob("kafka_2.13-*.jar")):
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[:5])
        raise KafkaJarsError(f"Maven could not fetch Kafka {version}; it said first:\n{said}")
    unfinished.rename(folder / "jars")
