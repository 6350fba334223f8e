"""Creates the union of releases: a definition per message, each version from its newest release.

Finds which messages of two releases are the same, and lists the differences between the union and
the releases. `merge` merges two definitions; `changes` decides which changes are breaking.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kproto.schema.layout import layout
from kproto.schema.layout_comparison import compare_layouts
from kproto.schema.specs import FormerName, MessageSpec
from kproto.schema.versions import Versions

from ..error_code import ErrorCode
from ..errors import DefinitionError
from ..origins import NO_ORIGINS, SourceFileNames
from ..releases.release import Release
from .merge import merge_messages, wire_form

__all__ = [
    "KEYED_TYPES",
    "MESSAGE_RENAMED",
    "MESSAGE_RENUMBERED",
    "Difference",
    "Union",
    "changed_type",
    "layout_differences",
    "message_key",
    "same_key",
    "unite",
]


#: The kinds of differences if a release used another name, or another version number, for a message
#: version with the same bytes.
MESSAGE_RENAMED: Final = "message renamed"
MESSAGE_RENUMBERED: Final = "message renumbered"


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A difference between a message version in the union and in a release.

    `kind` is MESSAGE_RENAMED, MESSAGE_RENUMBERED, or the value of a DifferenceKind. The value of a
    DifferenceKind means that a newer release changed the layout of the version; the union has the
    layout of the newest release.
    """

    message: str
    version: int
    kind: str
    field: str
    detail: str
    release: str

    def __str__(self) -> str:
        location = f"{self.message} v{self.version}" + (
            f", field {self.field}" if self.field else ""
        )
        return f"{location}: {self.kind}: {self.detail} (Kafka {self.release})"


@dataclass(frozen=True, slots=True)
class Union:
    """The merged messages of several releases, sorted by name.

    `differences` has all differences between a merged message and the message of a release.
    """

    releases: tuple[str, ...]
    messages: tuple[MessageSpec, ...]
    error_codes: tuple[ErrorCode, ...]
    differences: tuple[Difference, ...] = ()
    origins: SourceFileNames = field(default=NO_ORIGINS, compare=False)

    def message(self, name: str) -> MessageSpec:
        """Returns the message called `name` in the union. Raises KeyError if there is none."""
        for message in self.messages:
            if message.name == name:
                return message
        raise KeyError(f"the union has no message {name}")

    def resolve(self, name: str, version: int, kind: str) -> tuple[MessageSpec, int]:
        """Returns the message and version in the union for a message version of a release.

        `name`, `version` and `kind` (the message type) are those in the release. Raises KeyError if
        no release has them.
        """
        for message in self.messages:
            for entry in message.formerly:
                if (entry.name, entry.type) == (name, kind) and version in entry.versions:
                    return message, version - entry.versions.lowest + entry.becomes
        for message in self.messages:
            if message.name == name and version in message.valid_versions:
                return message, version
        raise KeyError(f"no release has {name} v{version} of type {kind}")


def unite(releases: Sequence[Release]) -> Union:
    """Returns the union of `releases`, which must be sorted, the oldest release first.

    Raises DefinitionError if there is no release, or if definitions cannot be merged.
    """
    if not releases:
        raise DefinitionError("there is no release to unite")
    oldest, *later = releases
    messages: Collection[MessageSpec] = oldest.messages
    files = oldest.origins.messages
    codes = {entry.code: entry for entry in oldest.error_codes}
    for release in later:
        newer = _unite(messages, files, release)
        messages, files = newer.by_name.values(), newer.files
        codes |= {entry.code: entry for entry in release.error_codes}
    newest_first = [release.origins for release in reversed(releases)]
    union = Union(
        releases=tuple(release.name for release in releases),
        messages=tuple(sorted(messages, key=lambda message: message.name)),
        error_codes=tuple(codes[code] for code in sorted(codes)),
        origins=SourceFileNames(
            tuple(folder for origins in newest_first for folder in origins.folders),
            files,
            tuple(file for origins in newest_first for file in origins.error_codes),
        ),
    )
    return replace(union, differences=tuple(layout_differences(union, releases)))


# Finding the messages of a newer release that are the same as those of an older release


@dataclass(slots=True)
class _NewerMessages:
    """The messages of a newer release, into which the messages of an older release are merged.

    `files` has the source files of each message of the newer release, by name; `older_files` has
    those of the older release.
    """

    by_name: dict[str, MessageSpec]
    files: dict[str, tuple[str, ...]]
    older_files: Mapping[str, tuple[str, ...]]

    def merge(self, message: MessageSpec, old: MessageSpec) -> None:
        """Stores `message`, which merges `old` and the newer definition of the same name.

        `message` gets the files of both definitions. A definition without versions only reserves
        the api key, so its files are left out.
        """
        new, name = self.by_name.get(message.name), message.name
        files: list[str] = []
        if new is None or new.valid_versions:  # without versions it only reserves the api key
            files += self.files.get(name, ())
        if old.valid_versions:
            files += self.older_files.get(old.name, ())
        self.by_name[name], self.files[name] = message, tuple(dict.fromkeys(files))


def _unite(
    older: Collection[MessageSpec], older_files: Mapping[str, tuple[str, ...]], release: Release
) -> _NewerMessages:
    by_name = {message.name: message for message in release.messages}
    newer = _NewerMessages(by_name, dict(release.origins.messages), older_files)
    older_names = {message.name for message in older}
    unmatched: list[MessageSpec] = []
    for old in older:
        counterpart = _same_name(old, newer)
        if counterpart is not None:
            newer.merge(merge_messages(old, counterpart), old)
        elif _is_renumbered_key(old, newer.by_name):
            _merge_renumbered(old, newer)
        else:
            unmatched.append(old)
    for old in unmatched:
        counterpart = _renamed(old, newer, older_names)
        if counterpart is not None:
            newer.merge(_with_former_name(merge_messages(old, counterpart), old), old)
        elif old.name not in newer.by_name:
            newer.merge(old, old)
        else:
            raise DefinitionError(
                f"the message {old.name} is of type {old.type} in one release and of type "
                f"{newer.by_name[old.name].type} in the next, {release.name}; no class can be both"
            )
    return newer


def changed_type(old: MessageSpec, newer: Mapping[str, MessageSpec]) -> bool:
    """Returns True if the newer message with the name of `old` has a type that cannot be merged.

    Keys and values of coordinators had the type `data` in older releases. Each version of such a
    key became a separate message of type `coordinator-key`.
    """
    new = newer.get(old.name, old)
    if _is_renumbered_key(old, newer):
        return not all(_key_numbered(v, new.module, newer) for v in old.valid_versions)
    return new.type != old.type and (old.type, new.type) != ("data", "coordinator-value")


def _same_name(old: MessageSpec, newer: _NewerMessages) -> MessageSpec | None:
    """Returns the newer message with the same name and a type that can be merged; else None."""
    if _is_renumbered_key(old, newer.by_name) or changed_type(old, newer.by_name):
        return None
    return newer.by_name.get(old.name)


def _is_renumbered_key(old: MessageSpec, newer: Mapping[str, MessageSpec]) -> bool:
    """Returns True if `old` has type `data`, and a newer `coordinator-key` has its name.

    The version numbers of `old` are then the api keys of the newer messages.
    """
    new = newer.get(old.name, old)
    return (old.type, new.type) == ("data", "coordinator-key")


def _key_numbered(
    number: int, module: str | None, messages: Mapping[str, MessageSpec]
) -> MessageSpec | None:
    """Returns the coordinator-key message of `module` with api key `number`; None if missing."""
    kind = (module, "coordinator-key", number)
    same = (each for each in messages.values() if (each.module, each.type, each.api_key) == kind)
    return next(same, None)


def _merge_renumbered(old: MessageSpec, newer: _NewerMessages) -> None:
    """Adds a former name to each coordinator key that a version of `old` has become.

    Version N of `old` has become version 0 of the key with api key N: both versions encode the
    int16 N in front of the key. Raises DefinitionError if there is no key with this api key.
    """
    module = newer.by_name[old.name].module
    for version in old.valid_versions:
        key = _key_numbered(version, module, newer.by_name)
        if key is None:
            raise DefinitionError(
                f"{old.name} (type data) becomes coordinator keys, but the next release has no "
                f"coordinator key with the api key {version}"
            )
        former = [
            FormerName(name, kind, Versions.single(number), 0)
            for name, kind, number in _names_of(old, version)
            if (name, number) != (key.name, 0)
        ]
        newer.merge(replace(key, formerly=(*key.formerly, *former)), old)


def _names_of(message: MessageSpec, version: int) -> Iterator[tuple[str, str, int]]:
    """Yields the names, types and version numbers that releases used for a version of `message`."""
    yield message.name, message.type, version
    for entry in message.formerly:
        number = version - entry.becomes + entry.versions.lowest
        if number in entry.versions:
            yield entry.name, entry.type, number


#: The types whose api key identifies the message.
KEYED_TYPES: Final = frozenset(
    {"request", "response", "metadata", "coordinator-key", "coordinator-value"}
)


def message_key(message: MessageSpec) -> tuple[str, str, int | None]:
    """Returns the module, type and api key of a message; the module is "" if api keys are global.

    The messages of two releases with the same key may be the same message under two names.
    """
    has_global_key = message.type in ("request", "response")
    return "" if has_global_key else message.module or "", message.type, message.api_key


def _renamed(old: MessageSpec, newer: _NewerMessages, older_names: set[str]) -> MessageSpec | None:
    """Returns the newer message with the same type and api key; None if there is none.

    The api keys of requests and responses are global; for all other types the module must be the
    same. A release may reuse an api key for another message. So the result must have a version in
    common with `old`, all common versions must have the same wire layout, and the newer name must
    not exist in the older releases.
    """
    for new in same_key(old, newer.by_name.values(), older_names):
        shared = old.valid_versions.intersect(new.valid_versions)
        if all(wire_form(layout(old, v)) == wire_form(layout(new, v)) for v in shared):
            return new
    return None


def same_key(
    old: MessageSpec, newer: Iterable[MessageSpec], older_names: Collection[str]
) -> Iterator[MessageSpec]:
    """Yields the newer messages that may be `old` under another name, perhaps with other bytes.

    They have the type and api key of `old`, a version in common with it, and a name that is not in
    `older_names`.
    """
    if old.type not in KEYED_TYPES or old.api_key is None:
        return
    for new in newer:
        if (
            message_key(new) == message_key(old)
            and new.name not in older_names
            and old.valid_versions.intersect(new.valid_versions)
        ):
            yield new


def _with_former_name(merged: MessageSpec, old: MessageSpec) -> MessageSpec:
    versions = old.valid_versions
    former = FormerName(old.name, old.type, versions, versions.lowest)
    return replace(merged, formerly=(*merged.formerly, former))


# Differences between the union and each release


def layout_differences(union: Union, releases: Sequence[Release]) -> Iterator[Difference]:
    """Compares each message version of the releases with that version in the union.

    Yields the differences of name, version number and layout.
    """
    for release in releases:
        for message in release.messages:
            for version in message.valid_versions:
                united, number = union.resolve(message.name, version, message.type)
                if message.name != united.name and number == version:
                    detail = f"was {message.name}"
                    yield Difference(united.name, number, MESSAGE_RENAMED, "", detail, release.name)
                elif number != version:
                    detail = f"was {message.name} v{version}"
                    yield Difference(
                        united.name, number, MESSAGE_RENUMBERED, "", detail, release.name
                    )
                for found in compare_layouts(layout(message, version), layout(united, number)):
                    yield Difference(
                        united.name,
                        number,
                        found.kind.value,
                        found.field,
                        found.detail,
                        release.name,
                    )
