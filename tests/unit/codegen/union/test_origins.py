"""Tests which definition files each message of a union is made from."""

from __future__ import annotations

from kproto_codegen.error_code import ErrorCode
from kproto_codegen.origins import NO_ORIGINS, SourceFileNames
from kproto_codegen.releases.release import Release
from kproto_codegen.union.release_union import unite

from kproto.schema.specs import MessageSpec

from ..samples import field, spec


def release(name: str, *messages: MessageSpec, codes: tuple[ErrorCode, ...] = ()) -> Release:
    files = {message.name: (f"{name}/{message.name}.json",) for message in messages}
    origins = SourceFileNames((name,), files, (f"{name}/errors.json",) if codes else ())
    return Release(name, messages, codes, origins)


def test_the_newest_release_comes_first() -> None:
    none = ErrorCode("NONE", 0, retriable=False)
    releases = [
        release("1.0", spec(field("A")), codes=(none,)),
        release("2.0", spec(field("A"), validVersions="1-3")),
        release("3.0", spec(field("A"), validVersions="2-4"), codes=(none,)),
    ]
    assert unite(releases).origins == SourceFileNames(
        ("3.0", "2.0", "1.0"),
        {"SampleRequest": tuple(f"{name}.0/SampleRequest.json" for name in (3, 2, 1))},
        ("3.0/errors.json", "1.0/errors.json"),
    )


def test_files_of_former_names_are_origins() -> None:
    one = spec(field("A"), name="OneRequest", validVersions="0")
    two = spec(field("A"), name="TwoRequest", validVersions="0-1")
    three = spec(field("A"), name="ThreeRequest", validVersions="0-2")
    made = unite([release("1", one), release("2", two), release("3", three)])
    assert made.origins.messages == {
        "ThreeRequest": ("3/ThreeRequest.json", "2/TwoRequest.json", "1/OneRequest.json")
    }


def test_data_is_an_origin_of_each_key_made_of_it() -> None:
    data = spec(name="SampleKey", type="data", apiKey=None, validVersions="0-1")
    keys = [
        spec(name=name, type="coordinator-key", apiKey=number, validVersions="0")
        for number, name in enumerate(["OldKey", "SampleKey"])
    ]
    assert unite([release("1", data), release("2", *keys)]).origins.messages == {
        "OldKey": ("2/OldKey.json", "1/SampleKey.json"),
        "SampleKey": ("2/SampleKey.json", "1/SampleKey.json"),
    }


def test_a_definition_without_versions_is_no_origin() -> None:
    some, none = spec(field("A")), spec(validVersions="none", flexibleVersions=None)
    for releases in ([some, none], [none, some]):
        one, two = releases
        made = unite([release("1", one), release("2", two)])
        newest = 1 + releases.index(some)
        assert made.origins.messages == {"SampleRequest": (f"{newest}/SampleRequest.json",)}


def test_a_message_of_one_release_has_one_origin() -> None:
    older, newer = spec(name="OldRequest"), spec(name="NewRequest", apiKey=901)
    assert unite([release("1", older), release("2", newer)]).origins.messages == {
        "NewRequest": ("2/NewRequest.json",),
        "OldRequest": ("1/OldRequest.json",),
    }


def test_releases_without_a_folder_have_no_origins() -> None:
    made = unite([Release("1.0", (spec(),)), Release("2.0", (spec(),))])
    assert made.origins == SourceFileNames(messages={"SampleRequest": ()})
    assert SourceFileNames() == NO_ORIGINS
