"""Tests that the blocking client is generated, and has the names of the asyncio client."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

import pytest

import kproto.sync
from tools.sync.classes import CLASSES, SyncClass
from tools.sync.emit import _is_awaitable_class, emitted, emitted_path
from tools.sync.prose import sync_docstring
from tools.sync.types_of_sync import sync_type

RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}

IDS = [each.name for each in CLASSES]


def both(cls: SyncClass) -> tuple[Any, Any]:
    """Returns the asyncio class and its blocking form."""
    asyncio_module = import_module(f"kproto.client.{cls.module.replace('/', '.')}")
    sync_module = import_module(f"kproto.sync.{cls.target.replace('/', '.')}")
    return getattr(asyncio_module, cls.name), getattr(sync_module, cls.name)


def public(cls: SyncClass, asyncio_class: Any) -> Iterator[tuple[str, Any]]:
    """Yields the public methods and properties of an asyncio class."""
    inherited = [base for base in asyncio_class.__mro__ if base.__name__ in cls.inherited.values()]
    members = [each for its in (asyncio_class, *inherited) for each in vars(its).items()]
    for name, member in members:
        is_special = name in RENAMED and cls.only is None
        if name.startswith("_") and not is_special:
            continue
        if cls.only is None or name in cls.only:
            yield name, member


@pytest.mark.parametrize("cls", CLASSES, ids=IDS)
def test_committed_module_is_what_the_script_writes(cls: SyncClass) -> None:
    written = emitted_path(cls).read_text(encoding="utf-8")
    assert written == emitted(cls), "run `python -m tools.sync`"


@pytest.mark.parametrize("cls", CLASSES, ids=IDS)
def test_blocking_class_has_every_method_with_the_same_arguments(cls: SyncClass) -> None:
    asyncio_class, sync_class = both(cls)
    for name, member in public(cls, asyncio_class):
        counterpart = inspect.getattr_static(sync_class, RENAMED.get(name, name))
        if isinstance(member, property | cached_property):
            assert isinstance(counterpart, property), name
            continue
        ours, theirs = (
            inspect.signature(getattr(each, "__func__", each)) for each in (counterpart, member)
        )
        assert [*ours.parameters] == [*theirs.parameters], name
        for mine, other in zip(ours.parameters.values(), theirs.parameters.values(), strict=True):
            assert (mine.kind, mine.default) == (other.kind, other.default), name
            if other.annotation is not inspect.Parameter.empty:
                assert mine.annotation == changed(other.annotation), name
        assert ours.return_annotation == changed(theirs.return_annotation), name
        assert not inspect.iscoroutinefunction(counterpart), name


def changed(annotation: str) -> str:
    """Returns an annotation of the asyncio client as the blocking client has it."""
    return ast.unparse(sync_type(ast.parse(annotation, mode="eval").body))


@pytest.mark.parametrize("cls", CLASSES, ids=IDS)
def test_blocking_class_has_no_further_public_method(cls: SyncClass) -> None:
    asyncio_class, sync_class = both(cls)
    attributes = {*cls.attributes}
    expected = {RENAMED.get(name, name) for name, _ in public(cls, asyncio_class)} | attributes
    found = {name for name in vars(sync_class) if not name.startswith("_")}
    assert found <= expected


@pytest.mark.parametrize("cls", CLASSES, ids=IDS)
def test_docstrings_mention_no_await_and_no_event_loop_of_the_caller(cls: SyncClass) -> None:
    _, sync_class = both(cls)
    for name, member in vars(sync_class).items():
        text = inspect.getdoc(member) or ""
        for word in ("async ", "await", "coroutine", "asyncio", "anext", "is cancelled"):
            assert word not in text, f"{name}: {word}"


def test_each_public_name_is_defined() -> None:
    for name in kproto.sync.__all__:
        assert getattr(kproto.sync, name).__name__ == name
    assert {*kproto.sync.__all__} <= {*dir(kproto.sync)}
    with pytest.raises(AttributeError, match="no public name 'Nothing'"):
        kproto.sync.Nothing  # noqa: B018


def test_method_whose_result_nothing_wraps_is_refused() -> None:
    client = next(each for each in CLASSES if each.name == "Client")
    for name in ("producer", "connection"):
        without = {key: body for key, body in client.bodies.items() if key != name}
        with pytest.raises(LookupError, match=f"Client.{name} returns .*add code"):
            emitted(replace(client, bodies=without))
    with pytest.raises(LookupError, match=r"Client.settings: add its type"):
        emitted(replace(client, attributes={}))


def test_awaitable_classes_are_recognized() -> None:
    found = {
        name: _is_awaitable_class(f"kproto.client.{name}")
        for name in (
            "producer.producer:Producer",
            "producer.acks:Acks",
            "network.connection:BrokerConnection",
            "metadata.cluster:TopicInfo",
        )
    }
    assert [*found.values()] == [True, False, True, False]


def test_paragraphs_without_a_change_keep_their_text() -> None:
    text = (
        "Returns the ack.\n\nUse it with `async\nwith`, or call `aclose`.\n\nRaises DeliveryError."
    )
    assert sync_docstring(text, 8) == (
        "Returns the ack.\n\nUse it with `with`, or call `close`.\n\nRaises DeliveryError."
    )


def test_awaitable_results_become_their_values() -> None:
    assert changed("Callable[[Record], Awaitable[object]]") == "Callable[[Record], object]"
