"""Tests the public API to study versions: fields by path, and suggestions of similar names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from kproto.schema import study
from kproto.schema.definitions import union
from kproto.schema.glossary import load_glossary
from kproto.schema.naming import attribute_name
from kproto.schema.specs import FieldSpec, MessageSpec
from kproto.schema.unknown_names import nearest


def paths(message: MessageSpec) -> Iterator[tuple[str, str, FieldSpec]]:
    structs = {struct.name: struct for struct in message.structs()}

    def walk(
        holder: str, fields: tuple[FieldSpec, ...], prefix: str
    ) -> Iterator[tuple[str, str, FieldSpec]]:
        for field in fields:
            yield holder, prefix + field.name, field
            inner = structs.get(field.element_type)
            if inner is not None:
                yield from walk(inner.name, inner.fields, f"{prefix}{field.name}.")

    yield from walk(message.name, message.fields, "")


def test_every_field_is_found_by_its_path_and_by_an_errors_path() -> None:
    glossary, count = load_glossary(), 0
    for message in union().values():
        for holder, path, field in paths(message):
            sentence = glossary.field(message.name, holder, field.name)
            assert study.meaning(message.name, path) == sentence
            attributes = [attribute_name(step, of_message=False) for step in path.split(".")]
            assert study.find_field(message, "[0].".join(attributes)) == (holder, field)
            count += 1
    assert count > 2000


def test_messages_are_found_by_former_names() -> None:
    assert study.meaning("FetchRequest") == load_glossary().message("FetchRequest")
    assert study.meaning("ListClientMetricsResourcesRequest")
    assert study.meaning("VoteRequest", "Topics.Partitions.CandidateId") == study.meaning(
        "VoteRequest", "Topics.Partitions.ReplicaId"
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "Topics.Partition",
            "FetchRequest: FetchTopic has no field 'Partition'; the nearest: Partitions",
        ),
        ("MaxBytes.More", "continues after MaxBytes, which is of type int32 and has no fields"),
        ("Topics..", "FetchTopic has no field ''"),
        (".", "FetchRequest has no field ''"),
    ],
)
def test_an_unknown_path_is_an_error(path: str, said: str) -> None:
    with pytest.raises(study.UnknownNameError) as caught:
        study.meaning("FetchRequest", path)
    assert said in str(caught.value)


def test_the_nearest_names_are_suggested() -> None:
    assert nearest("fetchresponse", union())[0] == "FetchResponse"
    assert nearest("FechRequest", union())[0] == "FetchRequest"
    assert nearest("", union()) == []
    assert nearest("☃", union()) == []


def test_decoding_does_not_load_the_glossary() -> None:
    script = (
        "import sys\n"
        "from kproto.messages import FetchRequest\n"
        "FetchRequest().encode(12)\n"
        "heavy = ['study', 'changes', 'glossary', 'release_table']\n"
        "names = ['tomllib', *(f'kproto.schema.{name}' for name in heavy)]\n"
        "sys.exit(' '.join(name for name in names if name in sys.modules) or None)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
