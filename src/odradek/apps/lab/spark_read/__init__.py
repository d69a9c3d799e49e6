"""Spark on topics, measured: its own connector, `format("odradek")`, the files; our brokers, Apache Kafka's."""
