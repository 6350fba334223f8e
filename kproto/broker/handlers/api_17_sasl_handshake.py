"""SaslHandshake (17), v0 to v1.

v0      tokens follow without a header (KIP-43)
v1      tokens follow in SaslAuthenticate (KIP-152)

`kproto.broker.sasl_authenticator` answers the handshakes of a listener with SASL. This handler gets
only handshakes on a listener without SASL, or handshakes when no re-authentication is possible, and
answers ILLEGAL_SASL_STATE as Kafka does.

Left out: GSSAPI, whose old clients send tokens without a handshake.
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
    """Rejects a handshake that is not expected."""
    return SaslHandshakeResponse(error_code=code_of("ILLEGAL_SASL_STATE"))
