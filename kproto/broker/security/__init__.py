"""Authentication: TLS of listeners, users, delegation tokens and SASL, as decisions without I/O.

`server_tls` has the TLS settings of a listener, `subjects` the principals of certificates, `users`
credentials, `tokens` delegation tokens; `sasl_session` is the SASL state of a connection. None of
them knows a connection, an event loop or a setting of the broker.
"""
