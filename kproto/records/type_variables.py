"""The type variables of generic classes: the types of keys and values, and of undecodable records.

Without codecs, keys and values are bytes: the defaults of the type variables say so, and `Record`
in an annotation is `Record[bytes, bytes]`. `typing` has defaults from Python 3.13 on, so type
checkers read them from `typing_extensions`, which a running program never imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Never

    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
    U = TypeVar("U", default=Never)
else:
    from typing import TypeVar

    #: The type of decoded keys.
    K = TypeVar("K")
    #: The type of decoded values.
    V = TypeVar("V")
    #: The type of records that the codecs could not decode; Never if such records raise an error.
    U = TypeVar("U")

__all__ = ["K", "U", "V"]
