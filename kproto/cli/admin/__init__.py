"""Commands for administrators, each with verbs: `kproto topics create orders`.

A command is described by a module such as `topics`, and runs in a module such as `run_topics`, as
the other commands do. Without a verb a command lists.
"""
