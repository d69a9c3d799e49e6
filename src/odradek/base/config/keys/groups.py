"""Consumer groups and the offsets topic."""

TABLE = """
group.initial.rebalance.delay.ms     int    3000        -    medium  read-only  obeyed
group.max.session.timeout.ms         int    1800000     -    medium  read-only  obeyed
group.max.size                       int    2147483647  >=1  medium  read-only  obeyed
group.min.session.timeout.ms         int    6000        -    medium  read-only  obeyed
offset.metadata.max.bytes            int    4096        -    high    read-only  obeyed
offsets.commit.required.acks         short  -1          -    high    read-only  obeyed
offsets.commit.timeout.ms            int    5000        >=1  high    read-only  obeyed
offsets.load.buffer.size             int    5242880     >=1  high    read-only  obeyed
offsets.retention.check.interval.ms  long   600000      >=1  high    read-only  obeyed
offsets.retention.minutes            int    10080       >=1  high    read-only  obeyed
offsets.topic.compression.codec      int    0           0..4 high    read-only  obeyed
offsets.topic.num.partitions         int    50          >=1  high    read-only  obeyed
offsets.topic.replication.factor     short  3           >=1  high    read-only  obeyed
offsets.topic.segment.bytes          int    104857600   >=1  high    read-only  obeyed
"""
