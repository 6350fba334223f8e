"""`ProducerWrapper`: makes the calls of a producer."""

from __future__ import annotations

from typing import Generic

from ..client.producer.producer import Producer
from ..records.type_variables import K, V
from .wrapper import Wrapper

__all__ = ["ProducerWrapper"]


class ProducerWrapper(Wrapper[Producer[K, V]], Generic[K, V]):
    """Makes the calls of a producer, which a child process may create again.

    A child process does not create a producer with a transactional id again, because the second
    producer would fence the first.
    """

    __slots__ = ()

    def _is_renewable(self) -> bool:
        return self._object.transactional_id is None
