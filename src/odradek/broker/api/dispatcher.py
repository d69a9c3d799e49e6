"""Dispatch of frames to their handlers, and of responses to connections.

The dispatcher is the application of the network threads. A request that can't block runs on the thread that read it;
others run on handler threads, as do requests that take long to decode. A frame that can't be decoded closes the
connection of its sender only.

Before the broker knows its cluster, its answers to clients would be wrong: before `open`, only requests of brokers and
controllers are served, and all others wait.
"""

import threading
from functools import partial
from time import monotonic_ns

from odradek.base.file_slice import COPIED_BYTES_MAX, FileSlice
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedExecutor
from odradek.broker.api.audit_entries import CHANGES, change_entry, record_outcome
from odradek.broker.api.context import Answer, BrokerServices, RequestContext
from odradek.broker.api.handlers.api_versions import unsupported_version
from odradek.broker.api.long_messages import shorten_messages
from odradek.broker.api.registry import HANDLERS, LATER, Handler, Outcome, handler_of
from odradek.broker.api.request_metrics import RequestMetrics
from odradek.broker.api.sasl_gate import SAMPLE_NAMES, SaslGate
from odradek.broker.api.throttling import throttled
from odradek.broker.log.core.check_budget import TakesLong
from odradek.broker.network.request import InboundRequest
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.decoding_steps import STEPS_MAX
from odradek.protocol.framing import RequestHeader, UnsupportedVersion, decode_request, encode_response, is_produce
from odradek.protocol.primitives import EncodeError, OverBudget, ProtocolError
from odradek.protocol.schema import Request, Response

log = get_logger(__name__)

# Limits of requests that a network thread decodes itself: bytes of a frame without records of a produce, and steps, 2
# ms of work.
LONG_FRAME_BYTES = 64 << 10
LONG_PRODUCE_BYTES = 4 << 20
QUICK_STEPS_MAX = 100_000
SERVED_FROM_THE_START = frozenset(
    {ApiKey.API_VERSIONS, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA}
)
RELEASING_THREADS = 4


class Dispatcher:
    def __init__(self, broker: BrokerServices, sasl: SaslGate) -> None:
        self._broker = broker
        self._sasl = sasl
        broker.metrics.add(sasl.samples, SAMPLE_NAMES)
        self.rounds = broker.groups.deferred_writes
        self._metrics = RequestMetrics()
        broker.metrics.add(self._metrics.samples)
        self._is_open = False
        self._opening = threading.Lock()
        self._waiting: list[InboundRequest] = []  # at most one per connection, which isn't read meanwhile

    def open(self) -> None:
        """Serve every client from now on, beginning with the waiting ones."""
        with self._opening:
            self._is_open = True
            waiting, self._waiting = self._waiting, []
        releasing = SupervisedExecutor("opening", RELEASING_THREADS)
        for request in waiting:
            releasing.submit(self._release, request)
        releasing.shutdown(wait=False)

    def begin(self, request: InboundRequest) -> bool:
        if (session := request.connection.sasl) is not None:
            served = self._sasl.begin(request, session, may_block=False)
            if served is not None:
                return served
        if not self._is_open and not _is_served_from_the_start(request):
            return False
        frame = request.frame
        if len(frame) > LONG_FRAME_BYTES and (len(frame) > LONG_PRODUCE_BYTES or not is_produce(frame)):
            return False
        return self._begin(request, may_wait=False)

    def run(self, request: InboundRequest) -> None:
        session = request.connection.sasl if request.work is None else None
        if session is not None and self._sasl.begin(request, session, may_block=True) is not None:
            return
        if not self._is_open and not _is_served_from_the_start(request):
            with self._opening:
                if not self._is_open:
                    self._waiting.append(request)
                    return
        work = request.work
        if work is None:
            self._begin(request, may_wait=True)
            return
        assert isinstance(work, partial)
        request.work = None
        ctx: RequestContext = work.args[2]
        ctx.started_ns = monotonic_ns()
        ctx.may_block = True
        work()

    def _begin(self, request: InboundRequest, *, may_wait: bool) -> bool:
        """Serve or refuse the request here, unless it may block and the thread may not; return whether
        that was done."""
        try:
            header, message = decode_request(request.frame, STEPS_MAX if may_wait else QUICK_STEPS_MAX)
        except UnsupportedVersion as unsupported:
            self._refuse_version(request, unsupported.header)
            return True
        except ProtocolError as error:
            if isinstance(error, OverBudget) and not may_wait:
                return False
            log.warning("malformed request", client=request.connection.id, error=str(error))
            request.close_connection("malformed request")
            return True
        handler = HANDLERS.get(header.api_key) or handler_of(header.api_key)
        if handler is None or not handler.min_version <= header.api_version <= handler.max_version:
            self._refuse_version(request, header)
            return True
        timings = self._metrics.of(header.api_key)
        ctx = RequestContext(self._broker, header, request, timings, _send, may_block=may_wait)
        may_block = handler.may_block
        if may_wait or not may_block or (may_block is not True and not may_block(message)):
            try:
                self._serve(handler, message, ctx)
                return True
            except TakesLong:
                ctx.was_put_off = True
        request.work = partial(self._serve, handler, message, ctx)
        return False

    def _serve(self, handler: Handler, message: Request, ctx: RequestContext) -> None:
        if self._broker.security.audit is not None and ctx.header.api_key in CHANGES:
            ctx.audit_entry = change_entry(message, ctx)
        outcome: Answer | Outcome = handler.run(message, ctx)
        ctx.handled_ns = monotonic_ns()
        if outcome is not LATER:
            assert not isinstance(outcome, Outcome)
            ctx.reply(outcome)

    def _release(self, request: InboundRequest) -> None:
        try:
            self.run(request)
        except Exception:
            log.exception("request failed", connection=request.connection.id)
            request.close_connection("its request failed")

    def _refuse_version(self, request: InboundRequest, header: RequestHeader) -> None:
        """Answer ApiVersions, whose error every client understands; for other requests close the connection."""
        if header.api_key == ApiKey.API_VERSIONS:
            request.reply(encode_response(header.correlation_id, unsupported_version(), 0))
            return
        log.warning(
            "unsupported request",
            client=request.connection.id,
            api_key=header.api_key,
            version=header.api_version,
        )
        request.close_connection(f"request {header.api_key} v{header.api_version} is not supported")


def _is_served_from_the_start(request: InboundRequest) -> bool:
    return int.from_bytes(request.frame[:2], "big") in SERVED_FROM_THE_START


def _send(ctx: RequestContext, response: Answer | None) -> None:
    header, request = ctx.header, ctx.request
    if ctx.audit_entry is not None and ctx.broker.security.audit is not None:
        record_outcome(ctx.broker.security.audit, ctx.audit_entry, response)
    if ctx.broker.quotas.is_limiting:
        response = throttled(ctx, response)
    request.on_sent = ctx.sent
    if response is None:
        request.reply(None)
    else:
        request.reply([response] if type(response) is bytes else _encoded(response, header))


def _encoded(response: Answer, header: RequestHeader) -> list[bytes | FileSlice]:
    try:
        return encode_response(header.correlation_id, response, header.api_version, COPIED_BYTES_MAX)
    except EncodeError:
        if not isinstance(response, Response) or not shorten_messages(response):
            raise
        return encode_response(header.correlation_id, response, header.api_version, COPIED_BYTES_MAX)
