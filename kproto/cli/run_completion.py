"""Prints the script of `kproto completion`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from .whole_parser import whole_parser

__all__ = ["completions", "run", "script"]


def run(options: argparse.Namespace) -> int:
    """Prints the completion of a shell; returns 0."""
    print(script(options.shell, completions(whole_parser())), end="")
    return 0


def completions(parser: argparse.ArgumentParser) -> dict[tuple[str, ...], list[str]]:
    """Returns the words that may follow the words of a command: verbs and options, sorted.

    The keys are `()` for `kproto`, `("topics",)` and `("topics", "create")`.
    """
    found: dict[tuple[str, ...], list[str]] = {}

    def walk(at: tuple[str, ...], its: argparse.ArgumentParser) -> None:
        words = {word for action in its._actions for word in action.option_strings}
        for action in its._actions:
            if isinstance(action, argparse._SubParsersAction):
                words |= set(action.choices)
                for name, child in action.choices.items():
                    walk((*at, name), child)
        found[at] = sorted(words)

    walk((), parser)
    return found


def script(shell: str, found: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    """Returns the script of a shell for the words of `completions`."""
    if shell == "fish":
        return "".join(f"{line}\n" for line in _fish(found))
    lines = [
        "_kproto() {",
        '    local at="${COMP_WORDS[1]}" words=""',
        '    [ "$COMP_CWORD" -gt 2 ] && at="$at ${COMP_WORDS[2]}"',
        '    [ "$COMP_CWORD" -eq 1 ] && at=""',
        '    case "$at" in',
    ]
    # A verb comes before its command alone, because the patterns are tried in order.
    for path in sorted(found, key=lambda path: (-len(path), path)):
        pattern = '""' if not path else f'"{" ".join(path)}"' + ("*" if len(path) == 1 else "")
        lines.append(f'        {pattern}) words="{" ".join(found[path])}" ;;')
    lines += [
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
        "}",
        "complete -o default -F _kproto kproto",
    ]
    if shell == "zsh":
        lines.insert(0, "autoload -U +X bashcompinit && bashcompinit")
    return "".join(f"{line}\n" for line in lines)


def _fish(found: Mapping[tuple[str, ...], Sequence[str]]) -> Iterator[str]:
    for path, words in sorted(found.items()):
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
        condition = seen or "__fish_use_subcommand"
        for word in words:
            if word.startswith("--"):
                yield f"complete -c kproto -n '{condition}' -l {word[2:]}"
            elif word.startswith("-"):
                yield f"complete -c kproto -n '{condition}' -s {word[1:]}"
            else:
                yield f"complete -c kproto -n '{condition}' -a {word}"
