"""Writes the docstring of a generated class: a sentence, the versions, an entry for each field.

Text from definitions is untrusted; it is changed so that it cannot end the docstring.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from kproto.schema.glossary import load_glossary
from kproto.schema.specs import MessageSpec
from kproto.schema.versions import Versions

from .plan import FieldPlan, StructPlan
from .wrapping import WIDTH

__all__ = ["class_docstring"]


def class_docstring(message: MessageSpec, plan: StructPlan) -> list[str]:
    """Returns the lines of the docstring for the class of a struct or message."""
    glossary, name = load_glossary(), message.name
    if plan.is_message:
        about = glossary.message(name)
        first = about or f"The {message.type} called {name}."
        versions = f"{_versions(plan.versions)}, {_flexible(plan)}.".capitalize()
    else:
        first = glossary.struct(name, plan.name) or f"{plan.name} of {name}."
        versions = f"{_versions(plan.versions)}.".capitalize()
    paragraphs: list[str | list[str]] = [first, versions]
    if plan.fields:
        entries = [f"{field.attribute}: {_about(message, plan, field)}" for field in plan.fields]
        paragraphs.append(entries)
    return _laid_out(paragraphs, margin=4)


def _about(message: MessageSpec, plan: StructPlan, field: FieldPlan) -> str:
    spec = field.spec
    text = spec.about or load_glossary().field(message.name, plan.name, spec.name) or ""
    notes = []
    used = plan.versions.intersect(spec.versions)
    if not used:
        notes.append("in no version")
    elif not used.covers(plan.versions):
        notes.append(_versions(used))
    nullable = used.intersect(spec.nullable_versions)
    if nullable and field.nullable:
        same = nullable.covers(used)
        notes.append("nullable" if same else f"nullable in {_versions(nullable)}")
    tagged = plan.tagged_versions(field)
    if tagged:
        notes.append(f"tag {spec.tag}")
    if spec.ignorable and not used.covers(plan.versions):
        notes.append("ignorable")
    return f"{text} ({', '.join(notes)})".strip() if notes else text


def _versions(versions: Versions) -> str:
    if versions.empty:
        return "in no version"
    if versions.lowest == versions.highest:
        return f"version {versions.lowest}"
    return f"versions {versions.lowest} to {versions.highest}"


def _flexible(plan: StructPlan) -> str:
    """Describes which versions of a message are flexible."""
    flexible = plan.flexible_versions
    if flexible == plan.versions:
        return "flexible" if len(plan.versions) == 1 else "all flexible"
    if not flexible:
        return "not flexible" if len(plan.versions) == 1 else "none flexible"
    return f"flexible in {_versions(flexible)}"


def _laid_out(paragraphs: Sequence[str | Sequence[str]], *, margin: int) -> list[str]:
    """Returns the lines of a docstring; a paragraph is text or a list of entries, each wrapped.

    Quotes, backslashes and unprintable characters are replaced, because the text is untrusted.
    """
    lines: list[str] = []
    width = WIDTH - margin
    for index, paragraph in enumerate(paragraphs):
        if index:
            lines.append("")
        if isinstance(paragraph, str):
            room = width - 6 if not index else width
            lines.extend(textwrap.wrap(_defused(paragraph), room))
        else:
            for entry in paragraph:
                wrapped = textwrap.wrap(_defused(entry), width, subsequent_indent="    ")
                lines.extend(wrapped)
    if len(lines) == 1:
        return [f'"""{lines[0]}"""']
    return [f'"""{lines[0]}', *lines[1:], '"""']


def _defused(text: str) -> str:
    flat = " ".join(text.split())
    plain = "".join(char if char.isprintable() else " " for char in flat)
    return plain.replace("\\", "/").replace('"', "'")
