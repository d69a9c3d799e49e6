"""The peer benchmark: Apache Kafka and Odradek, the same clients, the same machine, turn by turn.

    python -m odradek.apps.lab.bench [--rounds 3] [--quick] [--only produce,latency] [--out FILE.json]

`systems` starts either broker, `clients` runs the foreign clients against it, `process_stats` reads what that cost,
`figures` says what is measured and what is to be reached, `report` turns rounds into ratios. Only the public protocol
and foreign clients are used, nothing of the broker's own code: what is measured is
what a user of either system would see.
"""
