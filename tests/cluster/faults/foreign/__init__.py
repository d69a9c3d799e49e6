"""A judge whose clients are nobody of ours: librdkafka and Kafka's Java producer, under faults that a seed draws."""
