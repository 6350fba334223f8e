"""`python -m tools.language`: checks prose, names and commit subjects by rules.toml.

The exit code is 1 if a rule is broken, or if an exception matches no finding. `--list PATH …`
checks only these files and folders; its exit code is 2 if they contain no Python or Markdown file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .commits import check_subjects, subjects_since
from .exceptions import RuleExemptions, is_below, load_exceptions
from .rules import Finding, Rules, check_file, load_rules

ROOT: Final = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the check and returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.language", description="Check the language of this project."
    )
    parser.add_argument(
        "--list",
        nargs="+",
        metavar="PATH",
        help="print the findings of these files and folders alone",
    )
    options = parser.parse_args(arguments)
    rules, exceptions = load_rules(), load_exceptions()
    if options.list:
        return list_findings(rules, exceptions, options.list)
    return check(rules, exceptions)


def list_findings(rules: Rules, exceptions: RuleExemptions, places: Sequence[str]) -> int:
    """Prints the findings of all files in `places`.

    Returns 0 if there is no finding, 1 if there are findings, and 2 if there are no files.
    """
    wanted = [os.path.relpath(Path(place).resolve(), ROOT) for place in places]
    paths = [path for path in files(rules) if any(is_below(path, place) for place in wanted)]
    if not paths:
        print(f"no Python or Markdown file of this project is in {', '.join(places)}")
        return 2
    findings = exceptions.remaining(_findings(rules, paths))
    for finding in findings:
        print(finding)
    print(_summary(findings, len(paths)))
    return 1 if findings else 0


def check(rules: Rules, exceptions: RuleExemptions) -> int:
    """Prints broken rules in files and commit subjects, and unused exceptions; returns 1 if any."""
    paths = files(rules)
    all_findings = _findings(rules, paths)
    findings = exceptions.remaining(all_findings)
    wrong = [str(finding) for finding in findings] + exceptions.unused(all_findings)
    base = os.environ.get("LANGUAGE_BASE") or rules.commits["base"]
    subjects = subjects_since(ROOT, base)
    if subjects is None:
        print(f"language: commit subjects are not checked, commit {base[:8]} is not in this clone")
    else:
        wrong += check_subjects(subjects, rules.commits, exceptions.commits)
    for line in wrong:
        print(line)
    print(_summary(findings, len(paths)))
    return 1 if wrong else 0


def files(rules: Rules) -> list[str]:
    """Returns the paths of all handwritten Python and Markdown files, relative to the root."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
    except (subprocess.CalledProcessError, FileNotFoundError):  # an archive without git
        listed = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.*")]
        listed = [path for path in listed if not path.startswith(".")]
    return sorted(
        path
        for path in listed
        if path.endswith((".py", ".md"))
        and not _is_generated(rules, path)
        and (ROOT / path).exists()
    )


def _is_generated(rules: Rules, path: str) -> bool:
    return path.startswith(rules.generated) and not path.endswith("/base.py")


def _findings(rules: Rules, paths: Sequence[str]) -> list[Finding]:
    return [
        finding
        for path in paths
        for finding in check_file(rules, path, (ROOT / path).read_text(encoding="utf-8"))
    ]


def _summary(findings: Sequence[Finding], files: int) -> str:
    counts = Counter(finding.rule for finding in findings)
    each = ", ".join(f"{count} {rule}" for rule, count in counts.most_common())
    return f"language: {len(findings)} findings{f' ({each})' if each else ''} in {files} files"


if __name__ == "__main__":
    sys.exit(main())
