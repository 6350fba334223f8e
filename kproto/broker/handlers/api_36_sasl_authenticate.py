"""SaslAuthenticate (36), v0 to v2.

v0      one token of the exchange (KIP-152)
v1      session lifetime (KIP-368)
v2      flexible

`kproto.broker.sasl_authenticator` handles SaslAuthenticate on a listener with SASL. This handler
gets SaslAuthenticate only on a listener without SASL, or if an authenticated client sends
SaslAuthenticate without another SaslHandshake. The handler returns ILLEGAL_SASL_STATE as Kafka
does.

Left out: the delay after a failed authentication (connection.failed.authentication.delay.ms).
"""

from __future__ import annotations

from ...messages.sasl_authenticate_request import SaslAuthenticateRequest
from ...messages.sasl_authenticate_response import SaslAuthenticateResponse
from ...protocol.error_codes import code_of
from ..context import Context
from ..registry import handles


@handles(SaslAuthenticateRequest, versions=range(3))
def sasl_authenticate(
    context: Context, request: SaslAuthenticateRequest, version: int
) -> SaslAuthenticateResponse:
    """Returns ILLEGAL_SASL_STATE."""
    return SaslAuthenticateResponse(
        error_code=code_of("ILLEGAL_SASL_STATE"),
        error_message="SaslAuthenticate request received after successful authentication",
    )
