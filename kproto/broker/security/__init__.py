"""Who may come in: TLS of a listener, users, delegation tokens, and SASL, as decisions without I/O.

`server_tls` says what a listener shows and asks for, `subjects` whom a certificate stands for,
`users` keeps credentials, `tokens` delegation tokens; `authentication` is one connection's SASL.
None of them knows a connection, a loop or a setting of the broker.
"""
