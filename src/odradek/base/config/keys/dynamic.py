"""Dynamic-only keys of a broker: the throttles of a reassignment, which server.properties does not have."""

TABLE = """
follower.replication.throttled.rate             long  9223372036854775807  >=0  medium  per-broker  obeyed
leader.replication.throttled.rate               long  9223372036854775807  >=0  medium  per-broker  obeyed
replica.alter.log.dirs.io.max.bytes.per.second  long  9223372036854775807  >=0  medium  per-broker  obeyed
"""
