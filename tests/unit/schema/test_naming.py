"""Tests how names in definitions become names in Python that conflict with no other name."""

from __future__ import annotations

import keyword

import pytest

from kproto.schema.definitions import union
from kproto.schema.naming import attribute_name, class_name, module_name, snake_case
from kproto.schema.specs import MessageSpec


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("TopicId", "topic_id"),
        ("topicId", "topic_id"),
        ("ISRNodes", "isr_nodes"),
        ("NewISR", "new_isr"),
        ("RPCName", "rpc_name"),
        ("ScramSha512", "scram_sha512"),
        ("HTTP2Port", "http2_port"),
        ("A", "a"),
        ("already_snake", "already_snake"),
        ("KRaftVersionRecord", "kraft_version_record"),
        ("isKRaftController", "is_kraft_controller"),
        ("Enable2Pc", "enable_2pc"),
    ],
)
def test_snake_case(name: str, snake: str) -> None:
    assert snake_case(name) == snake


@pytest.mark.parametrize(
    ("name", "of_message", "attribute"),
    [
        ("Name", True, "name"),
        ("Class", True, "class_"),
        ("Class", False, "class_"),
        ("None", False, "none"),
        ("Size", True, "size_"),  # messages have a method `size`; structs do not
        ("Size", False, "size"),
        ("Encode", True, "encode_"),
        ("FromJson", True, "from_json_"),
        ("Copy", False, "copy_"),
        ("UnknownTaggedFields", False, "unknown_tagged_fields_"),
        ("Self", False, "self_"),  # __init__ has a parameter `self`
        ("List", False, "list_"),  # __init__ calls `list`
        ("Type", True, "type"),
        ("Id", True, "id"),
    ],
)
def test_attributes(name: str, of_message: bool, attribute: str) -> None:
    assert attribute_name(name, of_message=of_message) == attribute


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("TopicData", "TopicData"),
        ("Exception", "Exception_"),
        ("None", "None_"),
        ("True", "True_"),
        ("Uuid", "Uuid_"),
        ("Struct", "Struct_"),
        ("Iterable", "Iterable_"),
        ("Any", "Any_"),  # the package imports `Any`
        ("MODULES", "MODULES_"),
        ("DEFAULT", "DEFAULT_"),
    ],
)
def test_classes(name: str, cls: str) -> None:
    assert class_name(name) == cls


@pytest.mark.parametrize(
    ("name", "module"),
    [("FetchRequest", "fetch_request"), ("Base", "base_"), ("Import", "import_")],
)
def test_modules(name: str, module: str) -> None:
    assert module_name(name) == module


def test_no_letter_of_the_union_stands_alone() -> None:
    spellings = {snake_case(name) for spec in union().values() for name in _names(spec)}
    assert len(spellings) > 900
    assert [name for name in spellings if any(len(word) == 1 for word in name.split("_"))] == []


def _names(spec: MessageSpec) -> set[str]:
    """Returns every name in a definition."""
    groups = [spec.fields, *(struct.fields for struct in spec.structs())]
    fields = {field.name for group in groups for field in group}
    return {spec.name, *fields, *(struct.name for struct in spec.structs())}


def test_no_two_names_of_the_union_meet() -> None:
    modules = [module_name(name) for name in union()]
    assert len(set(modules)) == len(modules)
    for spec in union().values():
        for fields in [spec.fields, *(struct.fields for struct in spec.structs())]:
            made = [attribute_name(f.name, of_message=fields is spec.fields) for f in fields]
            assert len(set(made)) == len(made), spec.name
            assert all(name.isidentifier() and not keyword.iskeyword(name) for name in made)
