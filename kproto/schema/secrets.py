"""The fields of Kafka's messages that carry a secret; printing, dumps and pages hide them."""

from __future__ import annotations

from typing import Final

__all__ = ["ENVELOPES", "SECRETS"]

#: Fields that carry a secret, as (message, field); they are never printed.
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

#: Fields, by message, that contain another request or response, including its secrets.
ENVELOPES: Final = {"EnvelopeRequest": "request_data", "EnvelopeResponse": "response_data"}
