"""Lists the fields of Kafka's messages that carry a secret.

The repr of a message hides them. By default `study`, the proxy and the explorer hide them too.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ENVELOPES", "SECRETS"]

#: Fields that carry a secret, as (message, field).
SECRETS: Final = frozenset(
    {
        ("AlterConfigsRequest", "Value"),
        ("AlterUserScramCredentialsRequest", "Salt"),
        ("AlterUserScramCredentialsRequest", "SaltedPassword"),
        ("ConfigRecord", "Value"),
        ("CreateDelegationTokenResponse", "Hmac"),
        ("DescribeDelegationTokenResponse", "Hmac"),
        ("ExpireDelegationTokenRequest", "Hmac"),
        ("IncrementalAlterConfigsRequest", "Value"),
        ("RenewDelegationTokenRequest", "Hmac"),
        ("SaslAuthenticateRequest", "AuthBytes"),
        ("SaslAuthenticateResponse", "AuthBytes"),
        ("UserScramCredentialRecord", "Salt"),
        ("UserScramCredentialRecord", "ServerKey"),
        ("UserScramCredentialRecord", "StoredKey"),
    }
)

#: Attributes, by message, that contain an encoded request or response, which may have secrets.
ENVELOPES: Final = {"EnvelopeRequest": "request_data", "EnvelopeResponse": "response_data"}
