"""Parses the text of one definition file into a spec, with the line of every part.

Owns the syntax of a definition: JSON with comments (`json_text`), and the keys with their types
(`parser`). Does not know the rules of definitions, the source of files, or the use of the specs.
"""
