"""SaslHandshake (key 17): agree on a SASL mechanism.

After v0 the tokens follow as raw frames, after v1 as SaslAuthenticate requests.
"""

from odradek.protocol.schema import Request, Response, array, int16, string


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    mechanism: str = string()


class SaslHandshakeResponse(Response, key=17, versions="0-1"):
    error_code: int = int16()
    mechanisms: list[str] = array(string)  # what the broker can do
