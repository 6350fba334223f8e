"""`GroupConsumer.run`: handles records side by side, and commits what is done.

`tracker` and `lanes` say which records may be handled now, and up to where all is done; `deciding`
what becomes of one that failed; `run` is the shell of tasks around them.
"""
