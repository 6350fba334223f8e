"""SaslAuthenticate (36), v0 to v2.

v0      one token of the exchange (KIP-152)
v1      session lifetime (KIP-368)
v2      flexible

`kproto.broker.sasl_authenticator` answers the tokens of a listener with SASL. A token without a
handshake before it reaches this handler, which answers ILLEGAL_SASL_STATE as Kafka does.

Left out: the delay of a refusal (connection.failed.authentication.delay.ms).
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
    """Rejects a token that is not expected."""
    return SaslAuthenticateResponse(
        error_code=code_of("ILLEGAL_SASL_STATE"),
        error_message="SaslAuthenticate request received after successful authentication",
    )
