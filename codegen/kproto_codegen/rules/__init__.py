"""Kafka's rules for definitions: one function each, and the table of all rules.

Does not know releases or generated code: a rule sees parsed definitions only.
"""
