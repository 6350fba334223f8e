"""From the text of one definition file to a spec, with the line of every place in it.

Owns the form of a definition: the notation (`jsontext`) and the keys with their types (`parser`).
Must not know what makes a definition sensible, where files come from, or what becomes of them.
"""
