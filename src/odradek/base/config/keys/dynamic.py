"""What can be set for a broker while it runs and not in server.properties: the limits of a move of replicas."""

TABLE = """
follower.replication.throttled.rate             long  9223372036854775807  >=0  medium  per-broker  obeyed
leader.replication.throttled.rate               long  9223372036854775807  >=0  medium  per-broker  obeyed
replica.alter.log.dirs.io.max.bytes.per.second  long  9223372036854775807  >=0  medium  per-broker  obeyed
"""
