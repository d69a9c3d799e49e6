"""Consumer groups coordinated through ZooKeeper, as in Kafka 0.8, before brokers coordinated them.

    with ZooKeeperConsumer("127.0.0.1:2181", "billing", ["orders"]) as consumer:
        for record in consumer.poll():
            ...

Design one (`consumer`) is Kafka 0.8's: every member watches the group and decides for itself. Design two (`assigned`,
`coordinator`): members register, and only an elected coordinator watches and decides. Both keep the znodes of Kafka
0.8's consumer, read from the partitions' leaders and report what they do to an observer, so that their faults can be
counted (docs/internals/legacy.md). It imports no engine of the broker.
"""
