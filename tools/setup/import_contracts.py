"""Checks that packages import only the standard library: a contract that import-linter lacks.

import-linter's own contracts forbid packages by name, so they allow a new dependency until it is
listed. This contract checks each import.
"""

from __future__ import annotations

import sys
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

__all__ = ["StandardLibraryOnly"]

FIRST_IN_3_14 = frozenset({"annotationlib", "compression", "string.templatelib"})
"""Modules of the standard library that the oldest Python which runs this check lacks."""

STANDARD_LIBRARY = sys.stdlib_module_names | FIRST_IN_3_14


class StandardLibraryOnly(Contract):
    """Checks that `packages` import only themselves, the standard library and allowed packages.

    - `packages`: root packages.
    - `allowed`: lines such as `kproto.records -> cramjam`: the package on the left and its
      subpackages may import the top-level package on the right.
    """

    type_name = "standard_library_only"

    # import-linter sets the field to a list of strings, or None, on each instance.
    packages: Any = fields.ListField(subfield=fields.StringField())
    allowed: Any = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Finds the imports in `packages` that break the contract."""
        del verbose
        packages = tuple(self.packages)
        exceptions = [_parsed(line) for line in self.allowed or ()]
        offending = [
            (importer, imported)
            for importer in sorted(graph.modules)
            if _is_below(importer, packages)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not _is_below(imported, (importer.partition(".")[0],))
            and imported.partition(".")[0] not in STANDARD_LIBRARY
            and not any(
                _is_below(importer, (package,)) and _is_below(imported, (allowed,))
                for package, allowed in exceptions
            )
        ]
        return ContractCheck(kept=not offending, metadata={"offending": offending})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints each import that breaks the contract."""
        offending: Any = check.metadata["offending"]
        for importer, imported in offending:
            output.print_error(f"{importer} imports {imported}, which must be installed", bold=True)


def _is_below(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _parsed(line: str) -> tuple[str, str]:
    importer, arrow, imported = (part.strip() for part in line.partition("->"))
    if not (importer and arrow and imported):
        raise ValueError(f"{line!r} in `allowed` is not `package -> package`")
    return importer, imported
