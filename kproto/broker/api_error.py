"""How a decision says no: with one of Kafka's error codes and a sentence for people."""

from __future__ import annotations

from typing import Final

from ..protocol.error_codes import code_of, error_of_code
from ..wire.errors import BrokerResponseError

__all__ = ["api_error"]

#: Of a sentence. It quotes names as clients give them, which may be as long as a string of the
#: protocol can be (32,767 bytes); the sentence is such a string itself where an answer says it.
_MOST_CHARACTERS: Final = 1000


def api_error(name: str, detail: str) -> BrokerResponseError:
    """The error to raise; `name` is Kafka's, such as OFFSET_OUT_OF_RANGE."""
    if len(detail) > _MOST_CHARACTERS:
        detail = f"{detail[:_MOST_CHARACTERS]}..."
    return error_of_code(code_of(name), detail)
