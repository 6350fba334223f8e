"""Writes the blocking client, `kproto/sync`, from the classes of the asyncio client.

`python -m tools.sync` writes the modules; `make regen` fails if the committed ones differ.
`classes` lists the classes and the methods that need other code, `emit` writes a module,
`types_of_sync` and `prose` change types and docstrings.
"""
