"""Hooks that mkdocs calls while it builds the site (`hooks` of mkdocs.yml).

Fills the marks of pages with tables, adds the pages at the root of the tree, and leads links out of
`docs/` to the repository. Fails for a page of the site that would load anything from elsewhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from tools.docs.filling import fill
from tools.docs.links import ROOT, relative, rewrite_links

#: Pages at the root of the tree, by their place in the site.
_AT_THE_ROOT: Final = {
    f"project/{name.lower()}": name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
}
_PLACES: Final = {name: f"docs/{place}" for place, name in _AT_THE_ROOT.items()}

#: Code of a table that has bars: escaped for Markdown on platforms, and bare for Python-Markdown.
_BARS: Final = re.compile(r"(?<=[^\n`])`[^`\n]*\\\|[^`\n]*`")

#: Resources that a browser fetches by itself.
_FETCHED: Final = re.compile(
    r"<(?:script|img|iframe|source|audio|video|embed)\b[^>]*\ssrc=[\"']?(https?:)?//"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preload|preconnect|icon))[^>]*href=[\"']?(https?:)?//"
)


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages at the root."""
    for place, name in _AT_THE_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Returns the page's Markdown with its tables and with links that the site has."""
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
    """Raises PluginError if the page would load something from elsewhere."""
    found = _FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri}: {found[0]}: the site loads nothing from elsewhere")
    return output
