"""Draws the elements of a call of `send_many`, valid and invalid ones, and checks what was sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from kproto import ProducerRecord
from kproto.codecs import StringCodec

__all__ = ["Call", "SourceError", "calls"]


class SourceError(Exception):
    """Raised by the iterator of a call."""


#: The forms of the argument of a call.
_FORMS: Final = ("list", "generator", "failing generator")


@dataclass(frozen=True)
class Call:
    """The elements of a call, the codecs of its producer, and the form of its argument."""

    elements: list[Any]
    codecs: dict[str, Any]
    form: str

    def as_argument(self) -> tuple[Any, Iterator[Any]]:
        """Returns the argument of the call, and an iterator over its unread elements."""
        if self.form == "list":
            return self.elements, iter(())
        source = iter(self.elements)
        return self._generated(source), source

    def _generated(self, source: Iterator[Any]) -> Iterator[Any]:
        yield from source
        if self.form == "failing generator":
            raise SourceError

    def check(
        self, sent: Sequence[bytes | None], unsent: Iterable[Any], rest: Iterable[Any]
    ) -> None:
        """Checks that each element is in exactly one of the arguments, and all are in order."""
        count = len(sent)
        assert [*map(_value_bytes, self.elements[:count])] == [*sent]
        assert [*unsent, *rest] == self.elements[count:]


def _value_bytes(element: Any) -> bytes | None:
    value = element.value if isinstance(element, ProducerRecord) else element
    return value.encode() if isinstance(value, str) else value


def _elements(valid: Any, invalid: Any) -> st.SearchStrategy[Any]:
    """Draws values and records; most of them are valid.

    A broker refuses a timestamp that is far in the future, so records have no drawn timestamps.
    """
    values = st.sampled_from([valid, valid, None])
    absent = st.none()
    return st.one_of(
        *[values] * 6,
        st.builds(ProducerRecord, values, absent, st.just([("h", b"x")]), absent, absent),
        st.builds(ProducerRecord, values, absent, st.just(()), absent, st.sampled_from([0, None])),
        st.just(invalid),
        st.just(ProducerRecord(valid, partition=99)),
        st.just(ProducerRecord(valid, timestamp=-1)),
        st.just(ProducerRecord(valid, headers=[(5, b"x")])),  # type: ignore[list-item]
    )


def calls() -> st.SearchStrategy[Call]:
    """Draws calls of producers with and without a codec of values."""
    plain = st.tuples(st.lists(_elements(b"v", 5), max_size=60), st.just({}))
    encoding = st.tuples(
        st.lists(_elements("text", b"bytes"), max_size=60), st.just({"value": StringCodec()})
    )
    return st.builds(
        lambda drawn, form: Call(drawn[0], drawn[1], form),
        st.one_of(plain, encoding),
        st.sampled_from(_FORMS),
    )
