"""Compiles and runs a share consumer of Kafka's Java client."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from tools.kafka.jars import CACHE, resolve_jars
from tools.setup.java import java_home
from tools.setup.javac import compile_java
from tools.setup.once import locked

__all__ = ["share_worker"]

_SOURCE: Final = Path(__file__).with_name("ShareWorker.java")
_VERSION: Final = "4.4.0"


def share_worker(
    bootstrap: str,
    topic: str,
    group: str,
    *,
    acknowledgement: str = "explicit",
    max_poll_records: int = 500,
    idle_s: float = 0,
    output: str = "lines",
) -> list[str]:
    """Returns the command of a Java member; ShareWorker.java describes its arguments.

    Raises MavenError, JavaNotFoundError and CompilerError.
    """
    jars, home = resolve_jars(_VERSION), java_home()
    cache = CACHE.parent / "share"
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    classes = cache / f"classes-{digest}"
    with locked(cache / "lock"):
        if not classes.is_dir():
            compile_java(home, [_SOURCE], classes, libraries=f"{jars}/*", cache=cache)
    return [
        str(home / "bin" / "java"),
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        *("-cp", os.pathsep.join([str(classes), f"{jars}/*"]), "ShareWorker"),
        *(bootstrap, topic, group, acknowledgement, str(max_poll_records), str(idle_s), output),
    ]
