"""Hooks that mkdocs calls during a build of the site (`hooks` of mkdocs.yml).

Replaces the marks of pages by tables, and adds the pages of the repository's root. Changes links to
files outside of `docs/` to links to the repository. Fails if a page would load resources from
another host.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from tools.docs.filling import fill
from tools.docs.links import ROOT, relative, rewrite_links

#: By path in the site: the pages of the repository's root.
_AT_THE_ROOT: Final = {
    f"project/{name.lower()}": name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
}
_PLACES: Final = {name: f"docs/{place}" for place, name in _AT_THE_ROOT.items()}

#: Inline code with bars in a table row: GitHub needs the bars escaped, Python-Markdown unescaped.
_BARS: Final = re.compile(r"(?<=[^\n`])`[^`\n]*\\\|[^`\n]*`")

#: Tags for which a browser fetches a resource from another host.
_FETCHED: Final = re.compile(
    r"<(?:script|img|iframe|source|audio|video|embed)\b[^>]*\ssrc=[\"']?(https?:)?//"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preload|preconnect|icon))[^>]*href=[\"']?(https?:)?//"
)


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages of the repository's root to the site."""
    for place, name in _AT_THE_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Returns the page's Markdown with its tables, and with links that work in the site."""
    place = page.file.src_uri
    written = _AT_THE_ROOT.get(place, f"docs/{place}")

    def change(target: str) -> str:
        path, mark, fragment = target.partition("#")
        if not path or re.match(r"[a-z][a-z+.-]*:", path):
            return target
        full = relative(str(Path(written).parent / path), "")
        full = _PLACES.get(full, full)
        if full.startswith("docs/"):
            return relative(full, str(Path("docs", place).parent)) + mark + fragment
        if not (ROOT / full).exists():
            raise PluginError(f"{written}: {target}: there is no such file")
        return f"{config.extra['repository']}/blob/main/{full}{mark}{fragment}"

    return _BARS.sub(lambda row: row[0].replace(r"\|", "|"), fill(rewrite_links(markdown, change)))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Raises PluginError if the page would load a resource from another host."""
    found = _FETCHED.search(output)
    if found:
        raise PluginError(
            f"{page.file.src_uri}: {found[0]}: the site may not load resources from another host"
        )
    return output
