"""Experiments: rebalances in three designs, elections in two, faults, the benchmark against Apache Kafka."""
