"""`ProducerWrapper`: makes the calls of a producer."""

from __future__ import annotations

from ..client.producer.producer import Producer
from .wrapper import Wrapper

__all__ = ["ProducerWrapper"]


class ProducerWrapper(Wrapper[Producer]):
    """Makes the calls of a producer, which a child process may create again.

    A child process does not create a producer with a transactional id again, because the second
    producer would fence the first.
    """

    __slots__ = ()

    def _is_renewable(self) -> bool:
        return self._object.transactional_id is None
