"""Tests that the import contract finds exactly the imports from outside the standard library."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from tools.setup.import_contracts import StandardLibraryOnly


def offending(imports: dict[str, list[str]], allowed: list[str]) -> list[tuple[str, str]]:
    graph = ImportGraph()
    for importer, all_imported in imports.items():
        for imported in all_imported:
            graph.add_import(importer=importer, imported=imported)
    contract = StandardLibraryOnly(
        name="test",
        session_options={},
        contract_options={"packages": ["ours", "other"], "allowed": allowed},
    )
    check = contract.check(graph, verbose=False)
    found: list[tuple[str, str]] = check.metadata["offending"]
    assert check.kept == (not found)
    return found


def test_the_standard_library_and_the_package_itself_are_allowed() -> None:
    imports = {"ours.a": ["asyncio", "collections", "compression", "ours.b"], "ours": ["typing"]}
    assert offending(imports, []) == []


def test_a_dependency_is_found_wherever_it_is_imported() -> None:
    imports = {"ours": ["numpy"], "ours.a.b": ["jinja2"], "theirs": ["pandas"]}
    assert offending(imports, []) == [("ours", "numpy"), ("ours.a.b", "jinja2")]


def test_another_kproto_package_is_a_dependency() -> None:
    assert offending({"ours.a": ["other.b"]}, []) == [("ours.a", "other.b")]


def test_a_package_with_the_same_prefix_is_a_dependency() -> None:
    assert offending({"ours.a": ["ours_too"]}, []) == [("ours.a", "ours_too")]


def test_an_exception_applies_to_its_package_only() -> None:
    imports = {"ours.records.codecs": ["cramjam"], "ours.wire": ["cramjam"]}
    assert offending(imports, ["ours.records -> cramjam"]) == [("ours.wire", "cramjam")]


def test_an_invalid_exception_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'ours\.records' in `allowed`"):
        offending({}, ["ours.records"])
