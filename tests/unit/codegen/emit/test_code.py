"""Tests `emit.code`, generated code as data: opposite conditions, if/elif chains on the version."""

from __future__ import annotations

from itertools import product

import pytest
from kproto_codegen.emit.code import (
    Code,
    Condition,
    For,
    Layouts,
    chain,
    chains,
    choose,
    lines,
    opposites,
    when,
)

from kproto.schema.versions import Versions

EVERY = Versions(0, 5)


def of(*blocks: Code) -> Layouts:
    """Returns layouts of versions: version i has block i of `blocks`.

    The last block also has all later versions, up to `EVERY.highest`.
    """
    last = len(blocks) - 1
    return [
        (Versions(version, EVERY.highest if version == last else version), block)
        for version, block in enumerate(blocks)
    ]


def steps(code: Code, version: int) -> list[str]:
    """Executes the code for a version; returns the names of the functions called, in order."""
    done: list[str] = []
    names = {name: (lambda name=name: done.append(name)) for name in "abcxy"}
    source = "\n".join(lines(code))
    exec(source, {**names, "version": version, "yes": True, "no": False})
    return done


@pytest.mark.parametrize("either", [True, False])
def test_an_opposite_is_true_if_the_condition_is_false(either: bool) -> None:
    pairs = (("a", "not a"), ("b > 1", "b <= 1"), ("c is None", "c is not None"))
    for count in (1, 2, 3):
        one, other = opposites(*pairs[:count], either=either)
        for a, b, c in product([True, False], [1, 2], [None, 0]):
            values = {"a": a, "b": b, "c": c}
            assert eval(str(one), values) is not eval(str(other), values)


def test_a_condition_has_brackets_only_if_needed() -> None:
    assert Condition(("a", "b")).alone == str(Condition(("a", "b"))) == "a and b"
    assert str(Condition(("a", "b"), either=True)) == "a or b"
    assert Condition(("a", "b"), either=True).alone == "(a or b)"
    assert Condition(("a",), either=True).alone == "a"
    assert Condition(('x == " or "',)).alone == 'x == " or "'


def test_code_has_its_lines() -> None:
    inner = choose([("a", ["x()"]), (Condition(("b",), comment="why"), ["y()"])], ["c()"])
    assert lines(
        ["a()", For("_ in range(2)", (inner,)), For("_ in ()", ()), when("a", ["b()"])]
    ) == [
        "a()",
        "for _ in range(2):",
        "    if a:",
        "        x()",
        "    elif b:  # why",
        "        y()",
        "    else:",
        "        c()",
        "for _ in ():",
        "    pass",
        "if a:",
        "    b()",
    ]


BLOCKS: tuple[Code, ...] = (
    [],
    ["a()"],
    ["a()", "b()"],
    [when("yes", ["x()"])],
    [when("no", ["x()"])],
    [when("yes", ["x()"], ["y()"])],
    [when(Condition(("no", "yes"), either=True), ["x()"])],
    ["a()", when("yes", ["x()"]), "b()"],
    [For("_ in range(2)", ("c()",))],
)


@pytest.mark.slow
def test_a_chain_runs_the_code_of_each_version() -> None:
    for blocks in product(BLOCKS, repeat=3):
        layouts = of(*blocks)
        made, joined = chain(layouts, EVERY), chains([layouts, of(["a()"], [])], EVERY)
        for versions, block in layouts:
            for version in versions:
                wanted = steps(block, version)
                assert steps(made, version) == wanted
                assert steps(joined, version) == wanted + ["a"] * (version == 0)


@pytest.mark.parametrize(
    ("layouts", "made"),
    [
        (of(["a()"], ["a()"]), ["a()"]),
        (of(["a()"], ["b()"]), ["if version >= 1:", "    b()", "else:", "    a()"]),
        (of(["a()"], []), ["if version == 0:", "    a()"]),
        (of([], ["a()"]), ["if version >= 1:", "    a()"]),
        (of([], ["a()"], []), ["if version == 1:", "    a()"]),
        (of([], [when("yes", ["a()"])]), ["if version >= 1 and yes:", "    a()"]),
        (
            of([], [when(Condition(("yes", "no"), either=True), ["a()"])]),
            ["if version >= 1 and (yes or no):", "    a()"],
        ),
        (
            of([when("yes", ["a()"], ["x()"])], ["b()"]),
            ["if version >= 1:", "    b()", "elif yes:", "    a()", "else:", "    x()"],
        ),
        (
            of(["a()"], [], ["b()"]),
            ["if version >= 2:", "    b()", "elif version == 0:", "    a()"],
        ),
    ],
)
def test_a_chain_has_the_fewest_tests(layouts: Layouts, made: list[str]) -> None:
    assert lines(chain(layouts, EVERY)) == made


def test_chains_have_shared_code_once() -> None:
    both = [of(["a()", "x()", "c()"], ["a()", "y()", "c()"]), of(["b()"], [])]
    assert lines(chains(both, EVERY)) == [
        "a()",
        "if version >= 1:",
        "    y()",
        "    c()",
        "else:",
        "    x()",
        "    c()",
        "    b()",
    ]
    apart = [of(["a()", "x()", "c()"], ["a()", "y()", "c()"]), of(["b()"], ["b()"], [])]
    assert lines(chains(apart, EVERY)) == [
        "a()",
        "if version >= 1:",
        "    y()",
        "else:",
        "    x()",
        "c()",
        "if version <= 1:",
        "    b()",
    ]
