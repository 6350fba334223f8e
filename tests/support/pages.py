"""The pages of the documentation, and what is printed on them.

Knows where the pages stand and how a program of one is run, not what any of them says.
"""

from __future__ import annotations

import ast
import asyncio
import re
from types import CodeType, CoroutineType
from typing import Any

from .environment import ROOT

__all__ = ["blocks", "page_text", "run_program"]


def page_text(page: str) -> str:
    """The text of a page, named by its path from the root, such as `docs/how-to/records.md`."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_program(program: str, page: str) -> dict[str, Any]:
    """Run a program of a page, which may await at its top level; return what it has defined."""
    scope: dict[str, Any] = {}
    code: CodeType = compile(program, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    awaited = eval(code, scope)  # None, unless something is awaited at the top level
    if isinstance(awaited, CoroutineType):
        asyncio.run(awaited)
    return scope
