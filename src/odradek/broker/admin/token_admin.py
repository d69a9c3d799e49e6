"""Administration of delegation tokens: created, renewed and ended by any broker, known to every broker."""

import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.security.core.delegation_tokens import DelegationToken, TokenLifetimes, created, expired, renewed
from odradek.broker.security.known_tokens import KnownTokens
from odradek.broker.security.principal import KafkaPrincipal
from odradek.broker.zk.change_follower import ChangeFollower
from odradek.broker.zk.session import ZkSession, ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes.tokens import TOKEN_ROOTS, TokenChanges

log = get_logger(__name__)


class TokenAdmin:
    def __init__(self, session: ZkSession, clock: Clock, known: KnownTokens, lifetimes: TokenLifetimes) -> None:
        self.known = known
        self._session = session
        self._clock = clock
        self._lifetimes = lifetimes
        self._store = ZkStore(session)
        self._waiting_store = ZkStore(session, until_available=True)
        self._lock = threading.Lock()  # own changes and changes of other brokers, one at a time
        self._generation = 0
        self._seen = ""
        self._follower = ChangeFollower("token-changes", self._catch_up)
        self.refresh, self.stop = self._follower.refresh, self._follower.stop

    def start(self) -> None:
        """Read all tokens, and follow changes from then on."""
        self._session.ensure_paths(TOKEN_ROOTS)
        self._catch_up(everything=True)
        self._follower.start()

    def create(
        self,
        owner: KafkaPrincipal,
        requester: KafkaPrincipal,
        renewers: tuple[KafkaPrincipal, ...],
        asked_max_ms: int,
    ) -> DelegationToken:
        token_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        token = created(
            token_id,
            owner,
            requester,
            renewers,
            asked_max_ms=asked_max_ms,
            lifetimes=self._lifetimes,
            now_ms=self._clock.now_ms(),
        )
        with self._changing():
            self._write(token)
        return token

    def renew(self, principal: KafkaPrincipal, token_hmac: bytes, period_ms: int) -> int:
        """Return the new time of its end."""
        with self._changing():
            token = renewed(self._find(token_hmac), principal, period_ms, self._lifetimes, self._clock.now_ms())
            self._write(token)
        return token.expiry_ms

    def expire(self, principal: KafkaPrincipal, token_hmac: bytes, period_ms: int) -> int:
        """Return the new time of its end."""
        with self._changing():
            before = self._find(token_hmac)
            now_ms = self._clock.now_ms()
            token = expired(before, principal, period_ms, now_ms)
            if token is None:
                self._remove(before)
                return now_ms
            self._write(token)
        return token.expiry_ms

    def remove_expired(self) -> None:
        """Remove expired tokens; called by the controller, now and then."""
        for token in self.known.all():
            if token.is_expired(self._clock.now_ms()):
                with self._changing():
                    self._remove(token)

    def _find(self, token_hmac: bytes) -> DelegationToken:
        token = self.known.with_hmac(token_hmac)
        if token is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token

    def _write(self, token: DelegationToken) -> None:
        self._store.tokens.write_token(token)
        self.known.put(token.id, token)
        log.info("delegation token changed", token=token.id, owner=str(token.owner), expiry_ms=token.expiry_ms)

    def _remove(self, token: DelegationToken) -> None:
        self._store.tokens.delete_token(token.id)
        self.known.put(token.id, None)
        log.info("delegation token removed", token=token.id, owner=str(token.owner))

    def _catch_up(self, *, everything: bool) -> None:
        self._session.watch_children([TokenChanges.path])
        changed, newest = self._waiting_store.tokens.load_token_changes(self._seen)
        while not self._keep(None if everything else changed):
            continue
        self._seen = newest
        if everything:
            self._waiting_store.tokens.purge_token_changes(self._clock.now_ms())

    def _keep(self, token_ids: list[str] | None) -> bool:
        """Return False if a token was changed during the read: an older answer must not replace a newer one."""
        generation = self._generation
        found = self._waiting_store.tokens.load_tokens(token_ids)
        with self._lock:
            if generation != self._generation:
                return False
            for token_id, token in found.items():
                self.known.put(token_id, token)
            if token_ids is None:
                self.known.forget_others(found.keys())
        return True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            self._generation += 1
            try:
                yield
            except ZkUnavailable as error:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
