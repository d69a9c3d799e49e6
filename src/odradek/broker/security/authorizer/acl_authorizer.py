"""`kafka.security.authorizer.AclAuthorizer`: decisions from the ACLs in ZooKeeper, cached until the next change.

The ACLs and the decisions made from them are one object, which a change replaces: no decision outlives its ACLs. Until
the ACLs have been read, super users alone are allowed. Decisions are made by any thread and never block.
"""

from collections.abc import Callable, Iterable

from odradek.base.logs import LEVELS, get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.security.authorizer.core.acl_index import AclIndex, Acls
from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.acls import (
    SUPPORTED_OPERATIONS,
    AclBinding,
    AclFilter,
    AclOperation,
    ResourceType,
    operation_bits,
)

log = get_logger(__name__)
authorizer_log = get_logger("kafka.authorizer.logger")
"""Kafka's name: denied decisions at INFO, allowed ones at DEBUG."""

_DEBUG, _INFO = LEVELS["debug"], LEVELS["info"]
DECISIONS_MAX = 65_536
"""Cached decisions; when there are more, all are made anew."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The connection and the request on whose behalf an action is authorized."""

    principal: KafkaPrincipal
    host: str
    request: str
    """Name of its API key, as the authorizer log has it: `PRODUCE`."""


OnDenied = Callable[[Requester, AclOperation, ResourceType, str], None]


class _State:
    """ACLs at one time, and the decisions that were made from them."""

    __slots__ = ("acls", "decisions", "index")

    def __init__(self, acls: Acls, index: AclIndex) -> None:
        self.acls = acls
        self.index = index
        self.decisions: dict[tuple[str, str, str, int, int, str], bool] = {}
        """Decisions by plain texts and numbers: principals and enum members have a hash function in Python."""


def _ignore_denial(requester: Requester, operation: AclOperation, kind: ResourceType, name: str) -> None:
    pass


class AclAuthorizer:
    def __init__(
        self,
        super_users: Iterable[KafkaPrincipal],
        *,
        allow_everyone_if_no_acl_found: bool,
        on_denied: OnDenied = _ignore_denial,
    ) -> None:
        """`on_denied` is called for each denied action that the client requested explicitly."""
        self._super_users = frozenset((user.type, user.name) for user in super_users)
        self._allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self._state: _State | None = None
        self._on_denied = on_denied
        self.version = 0
        """Grows with each change of the ACLs, after it: a decision is never older than the version read before it."""

    @property
    def acl_count(self) -> int:
        return 0 if self._state is None else sum(len(entries or ()) for entries in self._state.acls.values())

    def set_acls(self, acls: Acls, *, everything: bool = True) -> None:
        """Use these ACLs from now on; without `everything`, the ACLs of other patterns stay.

        One caller at a time. A resource whose ACLs can't be read (None) is denied to all but super users.
        """
        state = self._state
        if everything or state is None:
            index = AclIndex(acls, allow_if_no_acl_found=self._allow_everyone_if_no_acl_found)
            self._state = _State(dict(acls), index)
        else:
            self._state = _State({**state.acls, **acls}, state.index.changed(acls))
        self.version += 1

    @property
    def logs_allowed(self) -> bool:
        """Return whether allowed decisions are logged, so that none may be skipped."""
        return authorizer_log.effective_threshold <= _DEBUG

    def authorize(
        self,
        requester: Requester,
        operation: AclOperation,
        kind: ResourceType,
        name: str,
        *,
        count: int = 1,
        log_allowed: bool = True,
        log_denied: bool = True,
    ) -> bool:
        """Decide an action. `count`: how often the request names the resource."""
        allowed = self._is_super_user(requester) or self._decide(requester, operation, kind, name)
        if not allowed and log_denied:
            self._on_denied(requester, operation, kind, name)
        if (log_allowed if allowed else log_denied) and _is_logged(allowed=allowed):
            _log(requester, operation, f"{kind.shown}:LITERAL:{name}", count, allowed=allowed)
        return allowed

    def authorize_by_resource_type(self, requester: Requester, operation: AclOperation, kind: ResourceType) -> bool:
        """Decide whether the action is allowed on any resource of the type, which need not exist."""
        if self._is_super_user(requester):
            return True
        state = self._state
        principal, host = str(requester.principal), requester.host
        allowed = state is not None and state.index.allows_any(principal, host, operation, kind)
        if not allowed:
            self._on_denied(requester, operation, kind, "NONE")
        if _is_logged(allowed=allowed):
            _log(requester, operation, f"{kind.shown}:UNKNOWN:NONE", 0, allowed=allowed)
        return allowed

    def authorized_operations(self, requester: Requester, kind: ResourceType, name: str) -> int:
        return operation_bits(
            operation
            for operation in SUPPORTED_OPERATIONS[kind]
            if self.authorize(requester, operation, kind, name, log_allowed=False, log_denied=False)
        )

    def acls(self, wanted: AclFilter) -> list[AclBinding]:
        state = self._state
        if state is None:
            return []
        bindings = (AclBinding(pattern, entry) for pattern, entries in state.acls.items() for entry in entries or ())
        return [binding for binding in bindings if wanted.matches(binding)]

    def _is_super_user(self, requester: Requester) -> bool:
        principal = requester.principal
        return (principal.type, principal.name) in self._super_users

    def _decide(self, requester: Requester, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        state = self._state
        if state is None:
            return False
        principal = requester.principal
        key = principal.type, principal.name, requester.host, operation._value_, kind._value_, name
        decision = state.decisions.get(key)
        if decision is None:
            decision = state.index.allows(str(requester.principal), requester.host, operation, kind, name)
            if len(state.decisions) >= DECISIONS_MAX:
                state.decisions.clear()
            state.decisions[key] = decision
        return decision


def _log(requester: Requester, operation: AclOperation, resource: str, count: int, *, allowed: bool) -> None:
    line = (
        f"Principal = {requester.principal} is {'Allowed' if allowed else 'Denied'} Operation = {operation.shown} "
        f"from host = {requester.host} on resource = {resource} for request = {requester.request} "
        f"with resourceRefCount = {count}"
    )
    (authorizer_log.debug if allowed else authorizer_log.info)(printable(line))


def _is_logged(*, allowed: bool) -> bool:
    return authorizer_log.effective_threshold <= (_DEBUG if allowed else _INFO)


def printable(text: str) -> str:
    """Names come from clients and may contain control characters, which a terminal would interpret."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
