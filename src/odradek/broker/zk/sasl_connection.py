"""kazoo's connection, with SASL of our own (DIGEST-MD5): kazoo's needs a package without releases since 2019. Used by
`session` alone."""

import secrets

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS, AuthFailedError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL

from odradek.broker.zk.zk_security import ZkLogin
from odradek.security.digest_md5 import DigestClient, DigestError


def log_in_with_sasl(client: KazooClient, login: ZkLogin) -> None:
    """Add the login to a client without connections."""
    client._connection = SaslConnection(client, client._conn_retry.copy(), logger=client.logger, sasl_options={})
    client._connection.login = login


class SaslConnection(ConnectionHandler):  # type: ignore[misc]
    login: ZkLogin

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        """AuthFailedError ends the client. Called by kazoo before any other request of a connection is sent."""
        exchange = DigestClient(self.login.user, self.login.password, secrets.token_hex(16))
        try:
            response = exchange.respond(self._exchange(b"", 1, timeout))
            exchange.verify(self._exchange(response, 2, timeout))
        except DigestError as error:
            raise AuthFailedError(str(error)) from None

    def _exchange(self, token: bytes, xid: int, timeout: float) -> bytes:
        self._submit(SASL(token), timeout, xid)
        header, buffer, offset = self._read_header(timeout)
        if header.xid != xid:
            raise AuthFailedError("the answer is to another request")
        if header.zxid > 0:
            self.client.last_zxid = header.zxid
        if header.err:
            raise AuthFailedError(str(EXCEPTIONS[header.err]()))
        challenge, _ = SASL.deserialize(buffer, offset)
        return bytes(challenge or b"")
