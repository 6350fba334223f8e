"""Writes docs/explanation/modules.md: each module with a sentence and its public names.

The sentence is the first sentence of the module's docstring; the names are those of `__all__`.

`python -m tools.docs.modules` writes the page. A test compares the page with the sources.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.docs.links import ROOT

__all__ = ["PAGE", "modules_page"]

PAGE: Final = ROOT / "docs/explanation/modules.md"

#: The roots of the packages, in the order of the page.
_ROOTS: Final = (
    "kproto",
    "codegen/kproto_codegen",
    "cloudevents/kproto_cloudevents",
    "pipeline/kproto_pipeline",
    "pipeline/pyspark_kproto",
    "tools",
)

#: The package with a generated module for each message; only its handwritten module is listed.
_GENERATED: Final = "kproto/messages"

_HEAD: Final = """\
# Modules

This page lists every hand-written module with the first sentence of its docstring, and in
parentheses the names that it defines for other modules.
[Architecture](architecture.md) describes how the packages work together.
`python -m tools.docs.modules` writes this page.
"""

_SENTENCE_END: Final = re.compile(r"(?<![ .]\w)[.](?=\s|$)")


def modules_page() -> str:
    """Returns the page: a section per package, a line per module."""
    return _HEAD + "".join(
        section
        for root in _ROOTS
        for package in _packages(ROOT / root)
        for section in _section(package)
    )


def _packages(root: Path) -> Iterator[Path]:
    """Yields a package and all packages below it, sorted by path."""
    yield from sorted(path.parent for path in root.rglob("__init__.py"))


def _section(package: Path) -> Iterator[str]:
    folder = package.relative_to(ROOT).as_posix()
    names = sorted(path for path in package.glob("*.py") if path.name != "__init__.py")
    if folder == _GENERATED:
        names = [package / "base.py"]
    if not names:
        return
    about = _first_sentence(_parsed(package / "__init__.py"))
    yield f"\n## {folder}\n\n" + (f"{about}\n\n" if about else "")
    yield from (f"- `{path.stem}`: {_description(_parsed(path))}\n" for path in names)


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _description(module: ast.Module) -> str:
    """Returns the module's first sentence, and in parentheses the public names that it lacks."""
    sentence = _first_sentence(module)
    names = ", ".join(name for name in _names(module) if name not in sentence)
    return f"{sentence} ({names})" if names else sentence


def _first_sentence(module: ast.Module) -> str:
    """Returns the first sentence of the module's docstring, on one line; "" if it has none."""
    text = ast.get_docstring(module) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    end = _SENTENCE_END.search(paragraph)
    return paragraph[: end.end()] if end else paragraph


def _names(module: ast.Module) -> Iterator[str]:
    """Yields the names of `__all__`, each as code."""
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from (f"`{name}`" for name in ast.literal_eval(node.value))


if __name__ == "__main__":
    PAGE.write_text(modules_page(), encoding="utf-8")
