"""Checks definitions by the rules of Kafka's message generator, and by some rules for Python.

`table` lists the rules for a single definition; each is a function from the parsed definition to
findings. `cross_message_rules` checks the messages of a release together.
"""
