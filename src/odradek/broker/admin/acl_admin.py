"""Administration of ACLs: any broker creates and deletes them, and applies the change at once; the others follow."""

from collections.abc import Callable, Iterable, Sequence

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.security.principal import KafkaPrincipal
from odradek.broker.zk.known_acls import KnownAcls
from odradek.model.acls import (
    CLUSTER_NAME,
    PATTERN_TYPES,
    RESOURCE_TYPES,
    AclBinding,
    AclEntry,
    AclFilter,
    AclOperation,
    PermissionType,
    ResourcePattern,
    ResourceType,
)


@dataclass(frozen=True, slots=True)
class DeletedAcl:
    binding: AclBinding
    error: KafkaError | None


class AclAdmin:
    def __init__(self, known: KnownAcls) -> None:
        self._known = known

    def create(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """Create bindings; return the errors of failed ones. An existing binding is no error."""
        errors = [_invalid(binding) for binding in bindings]
        by_pattern: dict[ResourcePattern, list[int]] = {}
        for number, binding in enumerate(bindings):
            if errors[number] is None:
                by_pattern.setdefault(binding.pattern, []).append(number)
        for pattern, numbers in by_pattern.items():
            added = frozenset(bindings[number].entry for number in numbers)
            try:
                self._known.update(pattern, added.union)
            except (KafkaError, ValueError) as error:
                for number in numbers:
                    errors[number] = _as_kafka_error(error)
        return errors

    def delete(self, filters: Sequence[AclFilter]) -> list[list[DeletedAcl]]:
        """Delete ACLs; return the deleted ones per filter. An ACL that several filters match belongs to the first
        one."""
        deleted: dict[AclBinding, tuple[int, KafkaError | None]] = {}
        for pattern in self._concerned(filters):
            matching = [number for number, wanted in enumerate(filters) if wanted.pattern.matches(pattern)]
            found: dict[AclEntry, int] = {}
            error: KafkaError | None = None
            try:
                self._known.update(pattern, _removal(filters, matching, found))
            except (KafkaError, ValueError) as failure:
                error = _as_kafka_error(failure)
            for entry, number in found.items():
                deleted[AclBinding(pattern, entry)] = number, error
        return [
            [DeletedAcl(binding, error) for binding, (owner, error) in deleted.items() if owner == number]
            for number in range(len(filters))
        ]

    def _concerned(self, filters: Iterable[AclFilter]) -> list[ResourcePattern]:
        """Return known patterns, and patterns that filters name: another broker may know more."""
        named = [pattern for wanted in filters for pattern in wanted.pattern.named_patterns()]
        patterns = dict.fromkeys([*self._known.patterns, *named])
        return [pattern for pattern in patterns if any(wanted.pattern.matches(pattern) for wanted in filters)]


def _removal(
    filters: Sequence[AclFilter], matching: Sequence[int], found: dict[AclEntry, int]
) -> Callable[[frozenset[AclEntry]], frozenset[AclEntry]]:
    """Remove the entries that a filter matches, and add them to `found` under that filter."""

    def remove(entries: frozenset[AclEntry]) -> frozenset[AclEntry]:
        found.clear()
        for entry in entries:
            for number in matching:
                if filters[number].entry.matches(entry):
                    found[entry] = number
                    break
        return entries - found.keys()

    return remove


def _invalid(binding: AclBinding) -> KafkaError | None:
    pattern, entry = binding.pattern, binding.entry
    message = None
    if pattern.type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not pattern.name:
        message = "Invalid empty resource name"
    elif (
        pattern.type not in RESOURCE_TYPES
        or pattern.pattern not in PATTERN_TYPES
        or entry.operation <= AclOperation.ANY
        or entry.permission not in (PermissionType.ALLOW, PermissionType.DENY)
    ):
        message = "Failed to create ACL: it contains unknown elements"
    elif "/" in pattern.name:
        message = f"Failed to create ACL: invalid resource name {pattern.name}"
    else:
        try:
            KafkaPrincipal.parse(entry.principal)
        except ValueError as error:
            message = f"Failed to create ACL: {error}"
    return None if message is None else KafkaError(ErrorCode.INVALID_REQUEST, message)


def _as_kafka_error(error: KafkaError | ValueError) -> KafkaError:
    return error if isinstance(error, KafkaError) else KafkaError(ErrorCode.INVALID_REQUEST, str(error))
