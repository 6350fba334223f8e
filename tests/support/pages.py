"""Reads the documentation pages, and runs the programs printed on them."""

from __future__ import annotations

import ast
import asyncio
import re
from types import CodeType, CoroutineType
from typing import Any

from .environment import ROOT

__all__ = ["blocks", "page_text", "run_program"]


def page_text(page: str) -> str:
    """Returns the text of a page, by its path such as `docs/how-to/records.md`."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Returns the fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_program(program: str, page: str) -> dict[str, Any]:
    """Runs a program of a page, which can use `await` at its top level; returns its globals."""
    scope: dict[str, Any] = {}
    code: CodeType = compile(program, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    awaited = eval(code, scope)  # None, unless the program awaits at top level
    if isinstance(awaited, CoroutineType):
        asyncio.run(awaited)
    return scope
