"""Parses the text of a definition file into a spec, and keeps the line numbers for errors.

`json_text` reads JSON with comments; `parser` checks the keys and the types of their values. The
package `rules` checks the definition itself.
"""
