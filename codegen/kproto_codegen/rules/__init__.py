"""What a definition must keep to be taken: Kafka's rules, one function each, and the table of all.

Must not know releases or generated code: a rule looks at parsed definitions and nothing else.
"""
