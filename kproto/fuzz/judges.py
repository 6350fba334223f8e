"""Chooses the judge: Kafka's Java classes if they can be run, else kproto's own codec.

The Java classes are an implementation like any other, a command in a checkout of kproto. An
installed kproto does not have it, and its codec is the judge.
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

#: The folder of the package; in a checkout it is the root.
_ROOT: Final = Path(__file__).resolve().parents[2]

_PROBE: Final = Case(Operation.REWRITE, MessageVersion("ApiVersionsRequest", 0), b"", "probe")


def find_judge(name: str, settings: FuzzSettings) -> tuple[Responder, bool]:
    """Returns the judge, and whether it is kproto's codec; `name` is one of JUDGES.

    Raises ConfigurationError if Java is required and not available.
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
        raise ConfigurationError(f"no judge of Kafka's Java classes: {reason}; or --judge kproto")
    return KprotoCodec(), True
