"""Functions to study the protocol: versions by release, layouts, and changes between versions.

    from kproto.schema import study

    study.releases()                             # ("0.8.2.0", …, "4.4.0")
    study.ranges("3.9.2")[1]                     # the version range of Fetch in 3.9.2
    study.added_in("Fetch", 13)                  # "3.1.0"
    study.stored_since("GroupMetadataValue", 4)  # "3.4"
    study.version_note("Fetch", 13)              # KIP-516: topic ids replace topic names
    study.changes("FetchRequest", 12, 13)        # field by field
    study.compare("3.9.2", "4.4.0")              # APIs, ranges, and what each new version changes
    study.meaning("FetchRequest", "Topics.Partitions.CurrentLeaderEpoch")
    study.messages("Greet", known)               # messages of your own package

The functions read data files in the package; they need no network and no generator. Most functions
about messages take the definitions of your own package as the last argument, `known`, as
`protocol.message_classes.definitions_in` returns them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .changes import (
    ChangeKind,
    FieldChange,
    RangeChange,
    ReleaseComparison,
    VersionChanges,
    changes,
    common_versions,
    compare,
    find_message,
    message_layout,
)
from .definition_comparison import (
    AlteredVersion,
    DefinitionComparison,
    MarkChanges,
    MessageChange,
    compare_definitions,
    release_definitions,
)
from .definition_folders import read_definitions
from .definitions import Definitions, union
from .glossary import load_glossary
from .kips import Kip, VersionNote, notes_of_kip, version_note, version_notes
from .layout_table import LayoutRow, least_size, message_rows
from .release_table import (
    ApiRange,
    added_in,
    api_name,
    api_names,
    former_api_names,
    ranges,
    releases,
    removed_in,
)
from .specs import FieldSpec, MessageSpec
from .stored_releases import stored_releases, stored_since
from .unknown_names import UnknownNameError, unknown_name_error

__all__ = [
    "AlteredVersion",
    "ApiRange",
    "ChangeKind",
    "DefinitionComparison",
    "FieldChange",
    "Kip",
    "LayoutRow",
    "MarkChanges",
    "MessageChange",
    "RangeChange",
    "ReleaseComparison",
    "UnknownNameError",
    "VersionChanges",
    "VersionNote",
    "added_in",
    "api_name",
    "api_names",
    "changes",
    "common_versions",
    "compare",
    "compare_definitions",
    "find_field",
    "find_message",
    "least_size",
    "meaning",
    "message_layout",
    "message_rows",
    "messages",
    "notes_of_kip",
    "ranges",
    "read_definitions",
    "release_definitions",
    "releases",
    "removed_in",
    "stored_releases",
    "stored_since",
    "version_note",
    "version_notes",
]


def meaning(message: str, field_path: str = "", known: Definitions | None = None) -> str:
    """Returns the glossary's sentence for a message, or for the field at `field_path`.

    The path has the names of the definition (`Topics.Partitions.LeaderEpoch`) or of attributes, as
    in an error (`topics[3].partitions[0].leader_epoch`). Returns "" if the glossary has no
    sentence. `known` are the definitions to search, by default Kafka's; for other definitions,
    returns the `about` of the field, and "" for a message. Raises UnknownNameError for an unknown
    message or field.
    """
    spec = find_message(message, known)
    is_kafka = known is None or known is union()
    if not field_path:
        return (load_glossary().message(spec.name) or "") if is_kafka else ""
    struct, field = find_field(spec, field_path)
    if not is_kafka:
        return field.about
    return load_glossary().field(spec.name, struct, field.name) or ""


def messages(part: str = "", known: Definitions | None = None) -> tuple[MessageSpec, ...]:
    """Returns the messages whose name contains `part`, sorted by name; all messages for "".

    Ignores case. If `part` is a number, returns the request and response with that api key. If no
    name contains `part`, returns the messages that have a former name with `part` in it. `known`
    are the definitions to search, by default Kafka's. Raises UnknownNameError if there is no
    message to return.
    """
    folded = part.casefold()
    all_known = union() if known is None else known
    specs = [all_known[name] for name in sorted(all_known)]
    if part.isascii() and part.isdigit():
        kinds = {"request", "response"}
        found = [spec for spec in specs if spec.api_key == int(part) and spec.type in kinds]
    else:
        found = [spec for spec in specs if folded in spec.name.casefold()]
        is_kafka = all_known is union()
        found = found or [spec for spec in specs if _formerly(spec, folded, is_kafka=is_kafka)]
    if not found:
        raise unknown_name_error("no message has in its name", part, all_known)
    return tuple(found)


def _formerly(spec: MessageSpec, folded: str, *, is_kafka: bool) -> bool:
    """Returns True if a former name of the message contains `folded`, which is casefolded."""
    former = [entry.name for entry in spec.formerly]
    for name, newest in former_api_names().items() if is_kafka else ():
        if spec.name in (f"{newest}Request", f"{newest}Response"):
            former.append(spec.name.replace(newest, name))
    return any(folded in name.casefold() for name in former)


def find_field(message: MessageSpec, path: str) -> tuple[str, FieldSpec]:
    """Returns the field at `path`, preceded by the name of the struct that contains it.

    If the message itself contains the field, the name is the message's name. Finds fields of all
    versions. Raises UnknownNameError, which names the first wrong part of the path and suggests the
    nearest fields.
    """
    structs = {struct.name: struct for struct in message.structs()}
    holder, fields = message.name, message.fields
    found: FieldSpec | None = None
    for step in re.sub(r"\[[^]]*\]", "", path).split("."):
        if found is not None:
            inner = structs.get(found.element_type)
            if inner is None:
                raise UnknownNameError(
                    f"{message.name}: {path!r} continues after {found.name}, which is of type "
                    f"{found.type} and has no fields"
                )
            holder, fields = inner.name, inner.fields
        found = _named(_folded(step), fields)
        if found is None:
            names = [field.name for field in fields]
            raise unknown_name_error(f"{message.name}: {holder} has no field", step, names)
    assert found is not None
    return holder, found


def _named(name: str, fields: Sequence[FieldSpec]) -> FieldSpec | None:
    for field in fields:
        if name in (_folded(field.name), *map(_folded, field.aliases)):
            return field
    return None


def _folded(name: str) -> str:
    """Returns `name` without underscores and case, for the comparison of field names.

    Both the field name `LeaderEpoch` and the attribute name `leader_epoch` become `leaderepoch`.
    """
    return name.replace("_", "").casefold()
