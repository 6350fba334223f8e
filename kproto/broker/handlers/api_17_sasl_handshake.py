"""SaslHandshake (17), v0 to v1.

v0      after SaslHandshake, the client sends its tokens without a request header (KIP-43)
v1      after SaslHandshake, the client sends its tokens in SaslAuthenticate (KIP-152)

`kproto.broker.sasl_authenticator` handles SaslHandshake on a listener with SASL. This handler gets
SaslHandshake only on a listener without SASL, or if no re-authentication is possible, and returns
ILLEGAL_SASL_STATE as Kafka does.

Left out: GSSAPI, whose old clients send tokens without SaslHandshake.
"""

from __future__ import annotations

from ...messages.sasl_handshake_request import SaslHandshakeRequest
from ...messages.sasl_handshake_response import SaslHandshakeResponse
from ...protocol.error_codes import code_of
from ..context import Context
from ..registry import handles


@handles(SaslHandshakeRequest, versions=range(2))
def sasl_handshake(
    context: Context, request: SaslHandshakeRequest, version: int
) -> SaslHandshakeResponse:
    """Returns ILLEGAL_SASL_STATE, because the client cannot authenticate on this connection now."""
    return SaslHandshakeResponse(error_code=code_of("ILLEGAL_SASL_STATE"))
