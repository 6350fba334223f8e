"""Renders the options of the data source as a Markdown table, for the documentation.

python -c "from kproto_pipeline.spark.options.option_docs import markdown_table, Use
print(markdown_table(Use.BATCH | Use.STREAM))"
"""

from __future__ import annotations

from .option_table import OPTIONS, OptionScope

__all__ = ["OptionScope", "markdown_table"]


def markdown_table(uses: OptionScope) -> str:
    """Returns a Markdown table of the options for `uses`: name, type, default, meaning."""
    lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for option in OPTIONS:
        if option.uses & uses:
            default = "–" if option.default is None else f"`{option.default}`"
            only = "; of a stream" if option.uses & uses == OptionScope.STREAM else ""
            only = "; of a batch" if option.uses & uses == OptionScope.BATCH else only
            lines.append(
                f"| `{option.name}` | {option.type} | {default} | {option.meaning}{only} |"
            )
    return "\n".join(lines) + "\n"
