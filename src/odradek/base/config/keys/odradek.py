"""Keys that Kafka doesn't have. They all start with `odradek.`, so that they can never be taken for Kafka's."""

TABLE = """
odradek.metrics.host                       string   127.0.0.1  -          low     read-only
odradek.metrics.port                       int      -1         -1..65535  low     read-only
odradek.recorder.enable                    boolean  true       -          low     read-only
odradek.recorder.dir                       string   -          -          low     read-only
odradek.recorder.max.bytes                 long     67108864   >=65536    low     read-only
"""
