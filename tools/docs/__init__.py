"""Builds the generated parts of the documentation, and checks its links.

`filling` replaces the marks of a page by generated tables: settings, commands, messages, error
codes. `links` finds broken links without any package. Only `hooks` imports mkdocs.
"""
