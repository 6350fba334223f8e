"""Decodes the bytes given to `kproto decode`; prints a tree of the fields, each with its bytes."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypedDict

from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses, definitions_in
from ..schema.message_lookup import find_messages
from ..schema.naming import class_name
from ..schema.unknown_names import UnknownNameError
from ..study import (
    Guess,
    Node,
    annotate_frame,
    annotate_frames,
    annotate_key,
    annotate_records,
    annotate_value,
    faults,
    find_message_class,
    guess,
    read_bytes,
    to_json,
    to_text,
)
from ..wire.errors import ConfigurationError, DecodeError
from .command_error import CommandError
from .selection import message_classes_from_options

__all__ = ["run"]

#: Columns of the output if it is not a terminal.
_PIPE_COLUMNS: Final = 120


#: The options that choose what the bytes are.
_OF_MESSAGES: Final = ("message", "version", "response", "part", "guess", "records")

#: By option that chooses how the bytes are read: the others of `_OF_MESSAGES` that it allows.
_ALLOWED: Final[dict[str, frozenset[str]]] = {
    "key": frozenset(),
    "value": frozenset({"message"}),
    "records": frozenset(),
    "guess": frozenset({"message", "version", "response"}),
}


def run(options: argparse.Namespace) -> int:
    """Prints the bytes as a tree; with `--guess`, first prints the possible messages; returns 0.

    Raises KprotoError for broken bytes.
    """
    _check_options(options)
    data = read_bytes(_input_bytes(options), options.form)
    if not data:
        raise ConfigurationError(
            "no bytes are given: pass them as an argument, with --file, or to stdin"
        )
    classes = message_classes_from_options(options)
    if classes is not KAFKA_MESSAGES and (options.key or options.value or options.records):
        raise ConfigurationError(
            "--key, --value and --records are for records of Kafka: omit --package"
        )
    if options.key or options.value:
        roots = iter([_of_record(options, data)])
    elif options.guess:
        roots = _guessed(options, data, classes)
    elif options.records:
        roots = iter([annotate_records(data, **_reader_options(options))])
    elif options.message is None and not options.response and options.part is None:
        roots = annotate_frames(data, classes=classes, **_reader_options(options))
    else:
        roots = iter([_of_message(options, data, classes)])
    return _printed(options, roots)


def _check_options(options: argparse.Namespace) -> None:
    """Raises ConfigurationError for a wrong width, and for an option that has no effect."""
    if options.file is not None and options.bytes != "-":
        raise ConfigurationError("pass BYTES or --file, not both")
    if options.width is not None and options.width < 1:
        raise ConfigurationError(f"--width is {options.width}: it must be 1 or more columns")
    given = [name for name in _OF_MESSAGES if getattr(options, name) not in (None, False)]
    mode = next((mode for mode in _ALLOWED if getattr(options, mode)), None)
    if mode is None:
        if options.version is not None and options.message is None:
            raise ConfigurationError(
                "--version needs --message, because the header of a request has its version"
            )
        return
    for name in given:
        if name != mode and name not in _ALLOWED[mode]:
            raise ConfigurationError(f"--{name} has no effect with --{mode}: omit one of them")


def _input_bytes(options: argparse.Namespace) -> bytes | str:
    """Returns the input unparsed, such as hex digits; an argument is always text.

    The argument or the file `-` means standard input. Raises CommandError if a file or the
    standard input is too large or unreadable.
    """
    most = options.max_input_bytes
    if options.file is None and options.bytes != "-":
        return str(options.bytes)
    try:
        if options.file in (None, "-"):
            given = sys.stdin.buffer.read(most + 1)
        else:
            with Path(options.file).open("rb") as file:
                given = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise CommandError(f"{options.file or 'stdin'} cannot be read: {error}") from None
    if len(given) > most:
        raise CommandError(f"the input has more than {most} bytes; --max-input-bytes allows more")
    return given


class _AnnotateArguments(TypedDict):
    """Holds arguments that `annotate_frame`, `annotate_frames` and `annotate_records` share."""

    records_of: str
    max_nodes: int | None


def _reader_options(options: argparse.Namespace) -> _AnnotateArguments:
    if options.max_nodes < 1:
        raise ConfigurationError(f"--max-nodes is {options.max_nodes}; it is 1 or more")
    return {
        "records_of": options.records_of,
        "max_nodes": None if options.all else options.max_nodes,
    }


def _of_message(options: argparse.Namespace, data: bytes, classes: MessageClasses) -> Node:
    message = options.message
    if message is not None:
        cls = find_message_class(message, response=options.response, classes=classes)
        if options.version is None and options.response:
            raise ConfigurationError(f"{cls.__name__} needs a --version")
        message = cls
    root = annotate_frame(
        data,
        message,
        options.version,
        response=options.response,
        part=options.part,
        classes=classes,
        **_reader_options(options),
    )
    if message is not None and options.version is None:
        named = str(root.value or "").partition(" ")[0]
        if named and named != message.__name__:
            raise ConfigurationError(
                f"the header names {root.value}, and not {message.__name__}: omit --message, or "
                "pass --version and --part body"
            )
    return root


def _of_record(options: argparse.Namespace, data: bytes) -> Node:
    """Returns the tree of the key or of the value of a record."""
    if not options.records_of:
        raise ConfigurationError(
            f"--{'key' if options.key else 'value'} needs the topic of the record: --records-of "
            "TOPIC, such as --records-of __consumer_offsets"
        )
    most = _reader_options(options)["max_nodes"]
    if options.key:
        return annotate_key(data, options.records_of, max_nodes=most)
    return annotate_value(data, options.records_of, message=options.message, max_nodes=most)


def _wanted_messages(options: argparse.Namespace, classes: MessageClasses) -> frozenset[str] | None:
    """Returns the classes of the messages that `--message` and `--response` allow; None for all."""
    if options.message is None:
        if not options.response:
            return None
        known = (name for package in classes.packages for name in definitions_in(package))
        return frozenset(class_name(name) for name in known if name.endswith("Response"))
    try:
        found = find_messages(str(options.message), definitions_in(classes.packages[0]))
    except UnknownNameError as error:
        raise ConfigurationError(str(error)) from None
    names = {class_name(spec.name) for spec in found}
    if options.response:
        names = {name for name in names if name.endswith("Response")}
    return frozenset(names)


def _guessed(options: argparse.Namespace, data: bytes, classes: MessageClasses) -> Iterator[Node]:
    """Prints the guesses, then yields the tree of the best guess.

    With `--json`, prints the guesses as JSON, and yields no tree.

    Raises CommandError if no known message fits the bytes.
    """
    messages = _wanted_messages(options, classes)
    found = guess(data, messages=messages, version=options.version, classes=classes)
    if not found:
        raise CommandError(
            "no known message fits the bytes"
            if options.message is None and options.version is None
            else "no message fits the bytes that --message and --version allow"
        )
    if options.json:
        print(json.dumps([_guess_as_json(one) for one in found], indent=2))
        return
    for number, one in enumerate(found, 1):
        print(f"{number:>2}. {_guess_as_text(one)}")
        print(f"    {'; '.join(one.reasons)}")
    print()
    first = found[0]
    most = _reader_options(options)["max_nodes"]
    if first.part == "key":
        yield annotate_key(data, first.records_of, max_nodes=most)
        return
    if first.part == "value":
        yield annotate_value(data, first.records_of, message=first.message, max_nodes=most)
        return
    yield annotate_frame(
        data,
        first.message,
        first.versions[-1],
        response=first.is_response,
        part=first.part,
        classes=classes,
        **_reader_options(options),
    )


def _guess_as_json(one: Guess) -> dict[str, object]:
    return {
        "message": one.message,
        "versions": list(one.versions),
        "part": one.part,
        "recordsOf": one.records_of or None,
        "score": one.score,
        "exact": one.exact,
        "reasons": list(one.reasons),
    }


def _guess_as_text(one: Guess) -> str:
    low, high = one.versions[0], one.versions[-1]
    versions = f"v{low}" if low == high else f"v{low} to v{high}"
    part = f"{one.part} in {one.records_of}" if one.records_of else one.part
    return f"{one.message} {versions}, as a {part} (score {one.score:g})"


def _printed(options: argparse.Namespace, roots: Iterator[Node]) -> int:
    """Prints each tree. Raises DecodeError for the first fault if any tree has a fault."""
    width = options.width or shutil.get_terminal_size((_PIPE_COLUMNS, 24)).columns
    first: DecodeError | None = None
    documents = []
    for root in roots:
        if options.json:
            documents.append(to_json(root, show_secrets=options.show_secrets))
        else:
            for line in to_text(
                root, width=width, show_secrets=options.show_secrets, about=options.about
            ):
                print(line)
        found = faults(root)
        if found and first is None:
            fault = found[0]
            # The value of a frame's root is the message name; records have no message.
            what = root.value if isinstance(root.value, str) and root.value else root.name
            first = DecodeError(
                fault.reason, message=what, field=fault.path or None, offset=fault.offset
            )
    if options.json and not options.guess:
        print(json.dumps(documents, indent=2))
    if first is not None:
        sys.stdout.flush()  # the tree precedes the error
        raise first
    return 0
