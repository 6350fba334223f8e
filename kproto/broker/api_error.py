"""Creates errors with one of Kafka's error codes and a message."""

from __future__ import annotations

from typing import Final

from ..protocol.error_codes import code_of, error_of_code
from ..wire.errors import BrokerResponseError

__all__ = ["api_error"]

#: Maximum length of a message in characters. A message may quote a name of up to 32,767 bytes that
#: a client sent, and the message must fit into a response string of 32,767 bytes.
_MOST_CHARACTERS: Final = 1000


def api_error(name: str, detail: str) -> BrokerResponseError:
    """Returns an error for the caller to raise, with the message `detail`.

    `name` is Kafka's error name, such as OFFSET_OUT_OF_RANGE. A long message is cut.
    """
    if len(detail) > _MOST_CHARACTERS:
        detail = f"{detail[:_MOST_CHARACTERS]}..."
    return error_of_code(code_of(name), detail)
