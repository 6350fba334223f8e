"""Authenticates clients by TLS or SASL, without I/O on connections.

`server_tls` has the TLS settings of a listener, `subjects` reads the principal from a certificate,
`users` holds passwords as salted keys, `tokens` holds delegation tokens. `sasl_session` tracks the
SASL state of a connection.
"""
