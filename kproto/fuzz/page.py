"""Formats a report as an HTML page that loads no other file.

Text from cases, answers and names is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from .case import printable

__all__ = ["page"]

_STYLE: Final = """
:root { color-scheme: light dark; --line: light-dark(#d5d8dc, #3a3f45);
  --soft: light-dark(#f3f4f6, #1f2328); --bad: light-dark(#b42318, #ff8a80);
  --good: light-dark(#1a7f37, #6fdd8b); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; margin: .3rem 0; }
details { border: 1px solid var(--line); border-radius: 6px; padding: .5rem .8rem;
  margin: .5rem 0; }
summary { cursor: pointer; } .bad { color: var(--bad); } .good { color: var(--good); }
"""

#: Maximum number of characters of a value on the page.
_SHOWN: Final = 4000


def page(report: dict[str, Any]) -> str:
    """Returns an HTML page of the JSON data of `report.to_json` or `BrokerResult.to_json`."""
    return "\n".join(_parts(report)) + "\n"


def _parts(report: dict[str, Any]) -> Iterator[str]:
    title = f"Fuzzing {report['implementation']}"
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{_text(title)}</h1>"
    yield f"<p>Judged by {_text(report['judge'])}, seed {_text(report['seed'])}.</p>"
    if report["stopped"]:
        yield f'<p class="bad">Stopped early: {_text(report["stopped"])}.</p>'
    yield "<table><tr><th>outcome</th><th>cases</th></tr>"
    for what, count in report["outcomes"].items():
        yield _row(what, count)
    yield f"{_row('all', report['cases'])}</table>"
    yield "<h2>Findings</h2>"
    if not report["findings"]:
        yield '<p class="good">None.</p>'
    for finding in report["findings"]:
        yield from _finding(finding)
    yield from _known(report)
    yield "<h2>What was tried</h2>"
    yield "<table><tr><th>message</th><th>version</th><th>kinds</th><th>cases</th></tr>"
    for name, versions in report["tried"].items():
        for version, kinds in versions.items():
            counts = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
            yield (
                f"<tr><td>{_text(name)}</td><td>{_text(version)}</td><td>{_text(counts)}</td>"
                f'<td class="number">{sum(kinds.values())}</td></tr>'
            )
    yield "</table></body></html>"


def _known(report: dict[str, Any]) -> Iterator[str]:
    """Yields the known findings and the message versions with one direction; brokers have none."""
    for name, versions in report.get("one_way", {}).items():
        listed = ", ".join(
            f"{message} {', '.join(map(str, each))}" for message, each in versions.items()
        )
        yield f"<p>{_text(name.replace('_', ' ').capitalize())}: {_text(listed)}</p>"
    for key, heading in (("known", "Known findings"), ("unseen", "Known, but not found")):
        if report.get(key):
            yield f"<h2>{heading}</h2>"
        for each in report.get(key, ()):
            yield f"<pre>{_text(json.dumps(each, ensure_ascii=False))}</pre>"


def _finding(finding: dict[str, Any]) -> Iterator[str]:
    mark = "good" if finding["harmless"] else "bad"
    yield (
        f'<details><summary><span class="{mark}">{_text(finding["words"])}</span>, '
        f"{_text(finding['operation'])}, {finding['count']} times"
        + (f": {_text(finding['trait'])}" if finding["trait"] else "")
        + "</summary>"
    )
    if finding["harmless"]:
        reason = (
            "Kafka's own brokers also close the connection on some valid requests"
            if finding["operation"] == "frames"
            else "Kafka writes no such messages"
        )
        yield f"<p>Harmless: {reason}.</p>"
    if finding["cause"]:
        yield f"<p>Cause: {_text(finding['cause'])}</p>"
    locations = ", ".join(
        f"{name} {', '.join(map(str, versions))}" for name, versions in finding["where"].items()
    )
    yield f"<p>Where: {_text(locations)}</p>"
    for key, words in (("example", "The smallest case"), ("right", "Judge"), ("given", "Command")):
        yield f"<p>{words}</p><pre>{_text(json.dumps(finding[key], ensure_ascii=False))}</pre>"
    yield "</details>"


def _row(what: str, count: int) -> str:
    return f'<tr><td>{_text(what)}</td><td class="number">{count}</td></tr>'


def _text(value: object) -> str:
    text = printable(str(value))
    return escape(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
