"""How a decision says no: with one of Kafka's error codes and a sentence for people."""

from __future__ import annotations

from ..protocol.error_codes import code_of, error_of_code
from ..wire.errors import BrokerResponseError

__all__ = ["refusal"]


def refusal(name: str, detail: str) -> BrokerResponseError:
    """The error to raise; `name` is Kafka's, such as OFFSET_OUT_OF_RANGE."""
    return error_of_code(code_of(name), detail)
