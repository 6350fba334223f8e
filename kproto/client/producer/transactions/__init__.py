"""Transactions of a producer (KIP-98, KIP-360, KIP-447, KIP-890).

`transaction_state` has the states and their transitions, and `transaction_errors` has the action
for each error of each API. `transaction_manager` decides which request is sent next, and
`transaction_completion` decides when a transaction may follow another one. These four modules do no
I/O. `transaction_driver` sends the requests; `transaction_requests` builds them and reads the
responses. `transaction` has the public class `Transaction`.
"""
