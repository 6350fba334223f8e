"""Returns the text of an error in words of the command line.

The client's errors name methods, settings and classes of the client, for programs. A user of the
terminal needs commands and options instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .acl_names import acl_name_text

if TYPE_CHECKING:
    from ..client.admin import AclBinding, AclBindingFilter, AdminError, ClientQuotaEntity

__all__ = ["part_text", "terminal_text"]

#: Parts of error messages that name Python, and the words of the command line for them.
_WORDS: Final = (
    (
        (
            "metadata requests create no topics: see Client.create_topics, or set "
            "allow_auto_create_topics"
        ),
        (
            "kproto topics create creates it, or the broker does with "
            "-X allow.auto.create.topics=true and its auto.create.topics.enable"
        ),
    ),
    (" (unknown_topic_wait_ms)", ""),
    (" (metadata_wait_ms)", ""),
    ("; no later one is sent", ""),
)

#: The position of a record in a call of the client, which the user of a command has not made.
_ELEMENT: Final = re.compile(r"element \d+, counted from 0: ")


def terminal_text(error: Exception) -> str:
    """Returns the text of an error, without names of Python."""
    text = str(error)
    # The class is not imported here: a command that did not import it has no such error.
    if type(error).__name__ == "AdminError":
        text = _admin_text(error)  # type: ignore[arg-type]  # see above
    for python, words in _WORDS:
        text = text.replace(python, words)
    return _ELEMENT.sub("", text)


def _admin_text(error: AdminError) -> str:
    unknown = " (no answer to an attempt; a broker may have made the change)"
    failed = "; ".join(
        f"{part_text(part)}: {terminal_text(each)}{unknown if part in error.unknown else ''}"
        for part, each in error.errors.items()
    )
    count = len(error.errors)
    return f"{error.action}: {count} of {count + len(error.results)} failed: {failed}"


def part_text(part: Any) -> str:
    """Returns the words of the command line for a part of an admin call."""
    words = _PARTS.get(type(part).__name__)
    if words is not None:
        return str(words(part))
    if type(part) is tuple and [type(each) for each in part] == [str, int]:
        return f"{part[0]}:{part[1]}"
    if isinstance(part, str):
        return repr(part)
    return f"broker {part}" if isinstance(part, int) else str(part)


def _acl_text(acl: AclBinding) -> str:
    name = acl_name_text(acl.name, is_prefix=acl.pattern_type.name == "PREFIXED")
    return (
        f"{acl.permission_type.name.lower()} {acl.operation.name.lower()} on "
        f"{acl.resource_type.name.lower()} {name} to {acl.principal} from {acl.host}"
    )


def _acl_filter_text(acl_filter: AclBindingFilter) -> str:
    return f"ACLs of {acl_filter.principal or 'all principals'}"


def _quota_text(entity: ClientQuotaEntity) -> str:
    words = []
    for name, value in zip(("user", "client-id", "ip"), entity, strict=True):
        if value is not None:
            words.append(f"--{name} {value}" if isinstance(value, str) else f"--{name}-default")
    return " ".join(words)


_PARTS: Final[dict[str, Any]] = {
    "AclBinding": _acl_text,
    "AclBindingFilter": _acl_filter_text,
    "ClientQuotaEntity": _quota_text,
    "ConfigResource": lambda it: f"{it.type.name.lower().replace('_', '-')}/{it.name}",
    "MemberToRemove": lambda it: f"member {it.instance_id or it.member_id}",
    "TopicPartitionReplica": lambda it: f"{it.topic}:{it.partition} on broker {it.broker}",
}
