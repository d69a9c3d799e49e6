"""Rights of the user on the cluster, by the brokers: they decide which files the console shows."""

from odradek.client.cluster_admin import authorized_operations
from odradek.client.cluster_client import ClusterClient
from odradek.model.acls import AclOperation

Rights = frozenset[AclOperation]


def read_rights(client: ClusterClient, before: Rights | None) -> Rights:
    bits = authorized_operations(client)
    return frozenset(operation for operation in AclOperation if bits >> operation & 1)
