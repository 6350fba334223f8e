"""Tests random definitions: a valid one generates working code, an invalid one raises one error."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from kproto_codegen.emit.package import generate
from kproto_codegen.errors import DefinitionError
from kproto_codegen.reading.parser import Definition, parse_definition
from kproto_codegen.releases.release import Release, format_facts
from kproto_codegen.rules.cross_message_rules import check_messages
from kproto_codegen.rules.table import checked_spec
from kproto_codegen.union.changes import release_changes
from kproto_codegen.union.merge import wire_form
from kproto_codegen.union.release_union import unite

from kproto.schema.layout import layout
from kproto.schema.specs import MessageSpec
from kproto.testing.instances import Fill, instance
from tests.support.examples import examples

from .definition_strategies import definitions, mutated_texts
from .packages import classes, imported, try_every_version

NUMBERS = itertools.count()


def checked(text: str, *, file: str = "drawn.json") -> Definition:
    definition = parse_definition(text, file=file)
    checked_spec(definition)
    return definition


def round_trip(specs: list[MessageSpec], folder: Path) -> None:
    """Generates a package, imports it, and tries every version of its messages."""
    out = folder / f"drawn{next(NUMBERS)}"
    generate(specs, package=out.name, out=out, definitions=out / "definitions.jsonl")
    with imported(out) as package:
        found = classes(package)
        assert len(found) == len([spec for spec in specs if spec.valid_versions])
        for cls in found:
            try_every_version(cls)


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow])
@given(node=definitions())
def test_valid_definitions_generate_working_code(
    node: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    spec = checked(json.dumps(node, indent=1)).spec
    assert checked(format_facts(spec)).spec.valid_versions == spec.valid_versions
    round_trip([spec], tmp_path_factory.mktemp("drawn"))


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(text=mutated_texts())
def test_a_mutated_definition_works_or_raises_one_error(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    refused: DefinitionError | None = None
    try:
        definition = checked(text)
    except DefinitionError as error:
        refused = error
    if refused is not None:
        assert refused.file == "drawn.json"
        assert refused.line is not None
        assert 1 <= refused.line <= text.count("\n") + 1
        return
    assert check_messages([definition]) == []
    out = tmp_path_factory.mktemp("changed") / f"drawn{next(NUMBERS)}"
    spec = definition.spec
    generate([spec], package=out.name, out=out, definitions=out / "definitions.jsonl")
    with imported(out) as package:
        for cls in classes(package):
            for version in cls.VALID_VERSIONS[:3]:
                made = instance(cls, version, Fill.LEAST)
                assert cls.decode(made.encode(version), version) == made


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(older=definitions(), newer=definitions())
@pytest.mark.slow
def test_any_two_releases_are_compared_and_united_or_refused(
    older: dict[str, Any], newer: dict[str, Any]
) -> None:
    specs = [checked(json.dumps(node)).spec for node in (older, newer)]
    old, new = (Release(name, (spec,)) for name, spec in zip(["1.0", "2.0"], specs, strict=True))
    assert release_changes(old, old) == []
    assert release_changes(new, new) == []
    try:
        made = unite([old, new])
    except DefinitionError:
        return  # the type has changed, or the versions have a gap
    for change in release_changes(old, new):
        assert change.versions
    for spec, release in zip(specs, (old, new), strict=True):
        for version in spec.valid_versions:
            united, number = made.resolve(spec.name, version, spec.type)
            same = wire_form(layout(united, number)) == wire_form(layout(spec, version))
            # If both releases have a version, the newer release defines it.
            assert same or (release is old and version in specs[1].valid_versions)
