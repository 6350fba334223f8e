"""Creates the decoder of a consumer and the encoder of a producer, if there are codecs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.errors import ConfigurationError

if TYPE_CHECKING:
    from ...codecs.protocols import AnyDecoder, AnyEncoder
    from ...codecs.record_decoder import RecordDecoder
    from ...codecs.record_encoder import RecordEncoder
    from ...records.type_variables import K, U, V

__all__ = ["record_decoder", "record_encoder"]


def record_decoder(
    key: AnyDecoder[K] | None, value: AnyDecoder[V] | None, undecodable: type[U] | None
) -> RecordDecoder[K, V, U] | None:
    """Returns the decoder of a consumer; None without codecs.

    Raises ConfigurationError for an object that is no codec, and for `undecodable` without codecs.
    """
    if key is not None or value is not None:
        from ...codecs.record_decoder import RecordDecoder  # only if there are codecs

        return RecordDecoder(key, value, undecodable)
    if undecodable is not None:
        raise ConfigurationError("undecodable is for a consumer with codecs: set key or value")
    return None


def record_encoder(
    key: AnyEncoder[K] | None, value: AnyEncoder[V] | None
) -> RecordEncoder[K, V] | None:
    """Returns the encoder of a producer; None without codecs.

    Raises ConfigurationError for an object that is no codec.
    """
    if key is None and value is None:
        return None
    from ...codecs.record_encoder import RecordEncoder  # only if there are codecs

    return RecordEncoder(key, value)
