"""Parses `subscribe`, `assign` and `subscribePattern` into the topics or partitions to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .errors import OptionError
from .option_json import read_json_object

if TYPE_CHECKING:
    from kproto.client import TopicPartition

__all__ = ["TopicSelection", "parse_assign", "parse_subscribe", "parse_subscribe_pattern"]

#: The characters that Java's `String.trim` removes.
_BLANKS: Final = "".join(map(chr, range(33)))


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """Topics by name, single partitions, or a topic pattern; exactly one of the three is set.

    `pattern` is an expression for Python's `re.search`, translated from Java's.
    """

    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    pattern: str | None = None


def parse_subscribe(name: str, text: str) -> TopicSelection:
    """Parses topic names separated by commas; drops empty names, as Spark's connector does.

    Raises OptionError if there is no name.
    """
    names = (topic.strip() for topic in text.split(","))
    topics = tuple(dict.fromkeys(filter(None, names)))
    if not topics:
        raise OptionError(f"option {name} is {text!r}; it must be topic names with commas between")
    return TopicSelection(topics=topics)


def parse_assign(name: str, text: str) -> TopicSelection:
    """Parses JSON such as `{"topic": [0, 1]}`. Raises OptionError for any other text."""
    expected = 'JSON such as {"topic": [0, 1]}'
    wrong = OptionError(f"option {name} is {text!r}; it must be {expected}")
    parsed = read_json_object(f"option {name}", text, expected=expected)
    if not parsed:
        raise wrong
    partitions: list[TopicPartition] = []
    for topic, numbers in parsed.items():
        if not isinstance(numbers, list) or not numbers:
            raise wrong
        for number in numbers:
            if type(number) is not int or number < 0:
                raise wrong
            partitions.append((topic, number))
    return TopicSelection(partitions=tuple(dict.fromkeys(partitions)))


def parse_subscribe_pattern(name: str, text: str) -> TopicSelection:
    """Translates a regular expression of Java for topic names, as in Spark's connector.

    As in the connector, blanks around the expression are dropped. Raises OptionError for an empty
    or invalid expression, and for a construct that has no translation.
    """
    from .java_regex import JavaRegexError, python_regex  # here, because few reads need it

    expression = text.strip(_BLANKS)
    if not expression:
        raise OptionError(f"option {name} is {text!r}; it must be a regular expression")
    try:
        return TopicSelection(pattern=python_regex(expression))
    except JavaRegexError as error:
        raise OptionError(
            f"option {name}: {expression!r} cannot be used as a regular expression of Java: {error}"
        ) from None
