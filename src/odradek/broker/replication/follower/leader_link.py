"""Connection of a fetch loop to its leader: the socket, the API versions of both sides, and the fetch that waits at the
leader.

A leader without new records holds a fetch for `replica.fetch.wait.max.ms`. A directive that arrives in the meantime
doesn't wait for it: the fetch is abandoned, and the next one is sent on a new connection and in a new session.
"""

import select

from odradek.base.config.constraints import release_of
from odradek.broker.network.setup_timeout import SetupTimeout
from odradek.broker.replication.core.fetch_session_client import FetchSessionHandler
from odradek.broker.replication.follower.fetch_assignment import FetchContext
from odradek.broker.replication.follower.fetcher_mailbox import FetcherMailbox
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.topology import Endpoint
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, ReplicaState

_GRACE_MS = 5  # wait for an answer that may be on its way, before a fetch is abandoned
_GIVE_UP_EVERY_MS = 100  # an abandoned fetch costs a connection and a full fetch: not for each of many directives
_GIVE_UP_PARTITIONS_PER_MS = 2  # a full fetch costs more with more partitions

_LAST_WITHOUT_DIVERGENCE = 11  # the last Fetch whose answer doesn't tell of diverging epochs
_LAST_BY_NAME = 12
_FIRST_REPLICA_STATE = 15
_FIRST_RELEASE_WITH_DIVERGENCE = (2, 7)


class LeaderLink:
    def __init__(
        self,
        context: FetchContext,
        endpoint: Endpoint,
        client_id: str,
        session: FetchSessionHandler,
        mailbox: FetcherMailbox,
    ) -> None:
        self._context = context
        self._config = context.config
        self._clock = context.clock
        self._endpoint = endpoint
        self._client_id = client_id
        self._session = session
        self._mailbox = mailbox
        self._may_know_divergence = knows_divergence(self._config.inter_broker_protocol_version)
        self.knows_divergence = self._may_know_divergence
        """True if a fetch response says where the logs diverge. If not, the leader must be asked for that first."""
        self._setup = SetupTimeout.of(self._config)
        self._peer: BrokerClient | None = None
        self._poller = select.poll()
        self._fetch_version = 0
        self._gave_up_at = self._clock.monotonic_ms()

    def connect(self) -> BrokerClient:
        if self._peer is None:
            peer = self._setup.connect(self._attempt)
            self._peer = peer
            self._poller = self._mailbox.new_poller()
            self._poller.register(peer.connection.fileno(), select.POLLIN)
            version = peer.best_version(ApiKey.FETCH)
            self.knows_divergence = self._may_know_divergence and version > _LAST_WITHOUT_DIVERGENCE
            self._fetch_version = version if self.knows_divergence else min(version, _LAST_WITHOUT_DIVERGENCE)
        return self._peer

    def _attempt(self, limit_ms: int) -> BrokerClient:
        peer = BrokerClient(
            self._endpoint.host,
            self._endpoint.port,
            self._client_id,
            self._config.replica_socket_timeout_ms,
            connect_timeout_ms=limit_ms,
            security=self._setup.security,
        )
        peer.connection.reuse_buffer(self._config.replica_socket_receive_buffer_bytes)
        return peer

    def disconnect(self) -> None:
        self._session.restart()
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def fetch(self) -> FetchResponse | None:
        """Fetch; return the leader's answer. None: the fetch was abandoned for a posted action."""
        peer = self.connect()
        request, version = self._request()
        peer.submit(request, version)
        if not self._await_answer(peer):
            self.disconnect()
            return None
        answer: FetchResponse = peer.receive()
        if not answer.responses:
            peer.connection.shrink_buffer()
        return answer

    def _request(self) -> tuple[FetchRequest, int]:
        config, session = self._config, self._session
        session_id, session_epoch = session.session_id, session.epoch
        topics, forgotten = session.next_topics()
        request = FetchRequest(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        version = self._fetch_version if session.has_all_topic_ids else min(self._fetch_version, _LAST_BY_NAME)
        broker_id = self._context.broker_id
        if version < _FIRST_REPLICA_STATE:
            request.replica_id = broker_id
        else:
            request.replica_state = ReplicaState(replica_id=broker_id, replica_epoch=self._context.broker_epoch())
        return request, version

    def _await_answer(self, peer: BrokerClient) -> bool:
        """Wait for the answer; return False if a posted action comes first."""
        mailbox = self._mailbox
        now = self._clock.monotonic_ms()
        deadline = now + self._config.replica_socket_timeout_ms
        give_up_at: int | None = None
        while True:
            mailbox.about_to_sleep()
            if mailbox.is_stopping:
                return False
            if mailbox.is_urgent and give_up_at is None:
                pause_ms = max(_GIVE_UP_EVERY_MS, len(self._session) // _GIVE_UP_PARTITIONS_PER_MS)
                give_up_at = max(now + _GRACE_MS, self._gave_up_at + pause_ms)
            until = deadline if give_up_at is None else min(deadline, give_up_at)
            if peer.connection.fileno() in mailbox.poll(self._poller, until - now):
                return True
            now = self._clock.monotonic_ms()
            if give_up_at is not None and now >= give_up_at:
                self._gave_up_at = now
                return False
            if now >= deadline:
                raise ConnectionFailed(f"the broker at {peer.address} didn't answer a Fetch in time")


def knows_divergence(protocol_version: str) -> bool:
    """Return whether brokers of this version report the divergence of logs in the answer to a fetch."""
    return release_of(protocol_version) >= _FIRST_RELEASE_WITH_DIVERGENCE
