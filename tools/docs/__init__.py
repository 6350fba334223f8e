"""Builds what the documentation does not write by hand, and checks its links.

`filling` replaces the marks of a page by tables of the code: settings, commands, messages, error
codes. `links` finds broken links without any package. `hooks` is all that knows mkdocs.
"""
