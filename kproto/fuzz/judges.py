"""Chooses the judge, whose answers are right: Kafka's Java classes or kproto's own codec.

The Java classes run as a command, which only a checkout of kproto has. An installed kproto uses its
own codec.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

from ..wire.errors import ConfigurationError
from .case import Case, MessageVersion, Operation, Outcome
from .implementation import Implementation, ImplementationError
from .kproto_codec import KprotoCodec
from .run import Responder
from .settings import FuzzSettings

__all__ = ["JUDGES", "find_judge"]

JUDGES: Final = ("auto", "java", "kproto")

#: The folder that contains the package `kproto`; in a checkout, the root.
_ROOT: Final = Path(__file__).resolve().parents[2]

_PROBE: Final = Case(Operation.REWRITE, MessageVersion("ApiVersionsRequest", 0), b"", "probe")


def find_judge(name: str, settings: FuzzSettings) -> tuple[Responder, bool]:
    """Returns the judge that `name` (one of JUDGES) selects, and whether it is kproto's codec.

    `auto` chooses the Java classes if they answer, else kproto's codec. Raises ConfigurationError
    for `java` if the Java classes do not answer.
    """
    if name == "kproto":
        return KprotoCodec(), True
    if (_ROOT / "tools" / "reference" / "answering.py").is_file():
        command = shlex.join([sys.executable, "-m", "tools.reference", "answer"])
        named = "Kafka's Java classes"
        java = Implementation(command, settings.of_a_judge(), name=named, folder=_ROOT)
        reason = "they do not answer"
        try:
            if java.respond([_PROBE])[0].outcome is Outcome.DONE:
                return java, False
        except ImplementationError as error:
            reason = str(error)
        java.close()
    else:
        reason = "they need a checkout of kproto, and this is an installed package"
    if name == "java":
        raise ConfigurationError(
            f"Kafka's Java classes cannot judge: {reason}; or use --judge kproto"
        )
    return KprotoCodec(), True
