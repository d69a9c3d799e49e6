"""Producer ids, transactions and the transaction state topic."""

TABLE = """
producer.id.expiration.ms                                    int      86400000   >=1  low     cluster-wide  obeyed
transaction.abort.timed.out.transaction.cleanup.interval.ms  int
    10000  >=1  low  read-only  obeyed
transaction.max.timeout.ms  int
    900000  >=1  high  read-only  obeyed
transaction.partition.verification.enable  boolean
    true  -  low  cluster-wide  obeyed
transaction.remove.expired.transaction.cleanup.interval.ms  int
    3600000  >=1  low  read-only  obeyed
transaction.state.log.load.buffer.size  int
    5242880  >=1  high  read-only  obeyed
transaction.state.log.min.isr  int
    2  >=1  high  read-only  obeyed
transaction.state.log.num.partitions  int
    50  >=1  high  read-only  obeyed
transaction.state.log.replication.factor  short
    3  >=1  high  read-only  obeyed
transaction.state.log.segment.bytes  int
    104857600  >=1  high  read-only  obeyed
transactional.id.expiration.ms  int
    604800000  >=1  high  read-only  obeyed
"""
