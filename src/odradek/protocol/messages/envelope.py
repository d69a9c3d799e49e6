"""Envelope (key 58): a broker forwards a client's request to the controller, with the client's principal."""

from odradek.protocol.schema import Request, Response, bytes_, int16


class EnvelopeRequest(Request, key=58, versions="0-0", flexible="0+"):
    request_data: bytes = bytes_()  # header and body
    request_principal: bytes | None = bytes_(nullable="0+")  # in the principal builder's own form
    client_host_address: bytes = bytes_()  # the raw address, 4 or 16 bytes


class EnvelopeResponse(Response, key=58, versions="0-0", flexible="0+"):
    response_data: bytes | None = bytes_(nullable="0+", default=None)  # header and body; None: see error_code
    error_code: int = int16()
