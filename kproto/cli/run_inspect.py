"""Prints the output of `kproto inspect`: a layout, a comparison of versions, a list or an error."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final

from ..protocol.error_meanings import error_meaning, find_error
from ..schema import study
from ..schema.definitions import Definitions, union
from ..schema.message_lookup import find_messages
from ..schema.specs import MessageSpec
from ..wire.counted import counted
from .inspect_errors import print_error, print_errors, print_hint
from .selection import definitions_from_options
from .tables import print_json, print_table, print_wrapped

__all__ = ["run"]

#: Maximum number of messages that the error lists if a name matches several messages.
_MAX_NAMED = 4

#: API keys with an exception from the rule for header versions.
_CONTROLLED_SHUTDOWN = 7
_API_VERSIONS = 18


def _header(message: MessageSpec, version: int) -> str:
    """Returns the text after the size of a message: the header that precedes it.

    The prefix of a stored record depends on its type and is not mentioned.
    """
    flexible = message.flexible_versions is not None and version in message.flexible_versions
    if message.type == "request":
        if message.api_key == _CONTROLLED_SHUTDOWN and version == 0:
            return ", after request header v0, which has no client id"
        return f", after request header v{2 if flexible else 1}"
    if message.type == "response":
        if message.api_key == _API_VERSIONS:
            return ", after response header v0 in every version (KIP-511)"
        return f", after response header v{1 if flexible else 0}"
    return ""


#: A KIP, such as KIP-848.
_KIP: Final = re.compile(r"kip-?([0-9]{1,5})", re.IGNORECASE | re.ASCII)

#: LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown: brokers had their version 0, in
#: Scala, before the clients jar had it, from which the table of releases is made.
_FIRST_IN_BROKERS: Final = frozenset({4, 5, 6, 7})


def run(options: argparse.Namespace) -> int:
    """Prints a layout, a comparison, a list or an error code; returns 0.

    With `--package`, prints only messages of this package. Raises UnknownNameError for an unknown
    message, version or error code.
    """
    known = definitions_from_options(options) or union()
    is_kafka = known is union()
    if not is_kafka and options.code is not None:
        options.refuse("error codes are Kafka's: omit --package")
    if is_kafka and (options.name == "error" or options.code is not None):
        _error(options)
        return 0
    if is_kafka and _is_error(options):
        print_error(error_meaning(options.name), as_json=options.json)
        return 0
    kip = _KIP.fullmatch(options.name or "") if is_kafka else None
    if kip is not None:
        _print_kip(int(kip[1]), as_json=options.json)
        return 0
    is_one = options.version is not None or options.diff is not None
    message = _message(options.name, known, one=is_one)
    if message is None:
        _list(options.name, known, as_json=options.json)
        if is_kafka and not options.json:
            print_hint(options.name)
    elif not message.valid_versions:
        raise study.UnknownNameError(f"{message.name} has no valid version")
    elif options.diff is not None:
        _diff(message, known, *options.diff, as_json=options.json)
    else:
        version = message.latest_stable if options.version is None else options.version
        if options.version is None and version not in message.valid_versions:
            version = message.valid_versions.highest
        _layout(message, known, version, as_json=options.json)
    return 0


def _error(options: argparse.Namespace) -> None:
    """Prints the error code that the argument CODE names, or all error codes."""
    if options.name != "error":
        options.refuse(f"unrecognized arguments: {options.code}")
    if options.version is not None or options.diff is not None:
        options.refuse("--version and --diff are for messages, not for error codes")
    if options.code is None:
        print_errors(as_json=options.json)
    else:
        print_error(error_meaning(options.code), as_json=options.json)


def _is_error(options: argparse.Namespace) -> bool:
    """Returns True if NAME is the name of an error code, or a code that is no api key."""
    if options.version is not None or options.diff is not None or find_error(options.name) is None:
        return False
    try:
        study.messages(options.name)
    except study.UnknownNameError:
        return True
    return False


def _message(name: str, known: Definitions, *, one: bool) -> MessageSpec | None:
    """Returns the message called `name`, regardless of case; `name` may be a former name.

    If `one` is False, returns None if no message or several messages match. If `one` is True,
    `name` may also be a part of a message's name. In this case, no match and several matches raise
    UnknownNameError.
    """
    try:
        found = find_messages(name, known)
    except study.UnknownNameError:  # `name` may be a substring of message names
        try:
            return study.find_message(name, known)
        except study.UnknownNameError:
            found = study.messages(name, known) if one else ()
    if len(found) == 1:
        return found[0]
    if not one:
        return None
    if not name:
        raise study.UnknownNameError("--version and --diff need the name of one message")
    names = ", ".join(message.name for message in found[:_MAX_NAMED])
    more = ", …" if len(found) > _MAX_NAMED else ""
    raise study.UnknownNameError(
        f"--version and --diff need one message, but {name!r} matches {len(found)}: {names}{more}"
    )


def _list(part: str, known: Definitions, *, as_json: bool) -> None:
    found = study.messages(part, known)
    if as_json:
        print_json([_message_json(message, known) for message in found])
        return
    print_table(
        ("MESSAGE", "TYPE", "KEY", "VERSIONS", "FLEXIBLE", "MEANING"),
        [
            (
                message.name,
                message.type,
                "" if message.api_key is None else str(message.api_key),
                str(message.valid_versions),
                str(message.flexible_versions),
                study.meaning(message.name, known=known),
            )
            for message in found
        ],
    )


def _message_json(message: MessageSpec, known: Definitions) -> dict[str, Any]:
    return {
        "message": message.name,
        "type": message.type,
        "module": message.module,
        "apiKey": message.api_key,
        "versions": str(message.valid_versions),
        "flexible": str(message.flexible_versions),
        "meaning": study.meaning(message.name, known=known),
    }


def _layout(message: MessageSpec, known: Definitions, version: int, *, as_json: bool) -> None:
    is_kafka = known is union()
    rows = study.message_rows(message.name, version, known)
    size, least = study.least_size(message.name, version, known)
    note = _note(message, version) if is_kafka else None
    added, dropped = _added_and_dropped(message, version) if is_kafka else (None, None)
    if as_json:
        data = _message_json(message, known) | {"version": version, "size": size, "least": least}
        if is_kafka:
            data |= {"broughtBy": added, "droppedBy": dropped}
            data |= {"note": None if note is None else note.to_json()}
        print_json(data | {"fields": [row.to_json() for row in rows]})
        return
    print(_title(message, known, f"version {version} of {message.valid_versions}"))
    if is_kafka and (_is_of_api(message) or added is not None):
        print(
            _added_words(message, version, added)
            + ("" if dropped is None else f", dropped in {dropped}")
        )
    if note is not None:
        print(f"v{version}: {_note_words(note)}")
    bound = "" if size is not None else "at least "
    print(f"{bound}{counted(least, 'byte')}{_header(message, version)}")
    if not rows:
        print("no fields")
        return
    print()
    print_table(
        ("OFFSET", "SIZE", "FIELD", "TYPE", "NULL", "DEFAULT", "TAG", "VERSIONS", "MEANING"),
        [
            (
                "" if row.offset is None else f"{'+' if row.counts_from else ''}{row.offset}",
                f"{row.least}+" if row.size is None else str(row.size),
                "  " * row.depth + row.field.rpartition(".")[2],
                row.type,
                "null" if row.nullable else "",
                row.default,
                "" if row.tag is None else str(row.tag),
                row.versions,
                row.meaning,
            )
            for row in rows
        ],
    )
    for words, fields in (
        ("ignorable", [row.field for row in rows if row.ignorable]),
        ("mapKey", [row.field for row in rows if row.map_key]),
    ):
        if fields:
            print_wrapped(f"{words}: {', '.join(fields)}")


def _diff(
    message: MessageSpec, known: Definitions, older: int, newer: int, *, as_json: bool
) -> None:
    is_kafka = known is union()
    changes = study.changes(message.name, older, newer, known)
    between = range(min(older, newer) + 1, max(older, newer) + 1) if is_kafka else ()
    notes = [note for version in between if (note := _note(message, version)) is not None]
    if as_json:
        data = study.VersionChanges(message.name, older, newer, changes).to_json()
        if is_kafka:
            data |= {"notes": [note.to_json() for note in notes]}
        print_json(data)
        return
    print(_title(message, known, f"version {older} to {newer}"))
    for note in notes:
        print(f"v{note.version}: {_note_words(note)}")
    if not changes:
        print("the layout is the same")
        return
    print()
    print_table(
        ("CHANGE", "FIELD", "DETAIL", "MEANING"),
        [
            (
                change.kind.value,
                change.field,
                change.detail,
                study.meaning(message.name, change.field, known) if change.field else "",
            )
            for change in changes
        ],
    )


def _title(message: MessageSpec, known: Definitions, versions: str) -> str:
    key = "" if message.api_key is None else f", api key {message.api_key}"
    meaning = study.meaning(message.name, known=known)
    return f"{message.name} ({message.type}{key}), {versions}" + (f"\n{meaning}" if meaning else "")


def _is_of_api(message: MessageSpec) -> bool:
    return message.module == "clients" and message.type in {"request", "response"}


def _added_and_dropped(message: MessageSpec, version: int) -> tuple[str | None, str | None]:
    if not _is_of_api(message):
        return study.stored_since(message.name, version), None
    return study.added_in(message.name, version), study.removed_in(message.name, version)


def _added_words(message: MessageSpec, version: int, added: str | None) -> str:
    if added is None:
        return "final in no release"
    if version == 0 and message.api_key in _FIRST_IN_BROKERS:
        return (
            f"in brokers of Kafka {study.releases()[0]} or earlier, in the clients jar of {added}"
        )
    if added == study.releases()[0]:  # of which release it is new is not known
        return f"in Kafka {added} or earlier"
    return f"added in Kafka {added}"


def _print_kip(number: int, *, as_json: bool) -> None:
    """Prints the versions that a KIP brought. Raises UnknownNameError if there are none."""
    notes = study.notes_of_kip(number)
    if not notes:
        raise study.UnknownNameError(f"no version of an API is known to come from KIP-{number}")
    if as_json:
        print_json([note.to_json() for note in notes])
        return
    title = next(kip.title for kip in notes[0].kips if kip.number == number)
    print(f"KIP-{number} {title}".rstrip())
    rows = [
        (note.api, str(note.version), study.added_in(note.api, note.version) or "", note.change)
        for note in notes
    ]
    print_table(("API", "VERSION", "SINCE", "CHANGE"), rows)


def _note(message: MessageSpec, version: int) -> study.VersionNote | None:
    return study.version_note(message.name, version) if _is_of_api(message) else None


def _note_words(note: study.VersionNote) -> str:
    kips = ", ".join(f"{kip} {kip.title}".rstrip() for kip in note.kips)
    return note.change + (f" ({kips})" if kips else "")
