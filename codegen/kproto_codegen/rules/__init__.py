"""Checks definitions by the rules of Kafka's message generator, which is called the reference.

Each rule is a function from a parsed definition to findings; `table` lists the rules.
"""
