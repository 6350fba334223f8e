"""Builds the generated parts of the documentation, and checks its links.

`filling` replaces the marks of a page by generated tables of settings, commands, messages and error
codes. `modules` writes the list of all modules. `links` finds broken links with the standard
library alone. Only `hooks` imports mkdocs.
"""
