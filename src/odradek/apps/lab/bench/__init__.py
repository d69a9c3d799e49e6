"""The peer benchmark: Apache Kafka and Odradek, the same clients, the same machine, turn by turn.

    python -m odradek.apps.lab.bench [--rounds 3] [--quick] [--only produce,latency] [--out FILE.json]

`systems` starts either broker, `clients` runs foreign clients against it, `process_stats` reads the cost, `figures` has
the figures and their targets, `report` turns rounds into ratios. Only the public protocol and foreign clients are used,
nothing of the broker's own code: the figures are those of a user of either system.
"""
