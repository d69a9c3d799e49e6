"""About the keys that Kafka doesn't have."""

TEXT = """
odradek.metrics.host
    The address on which figures are served to Prometheus, at /metrics.
odradek.metrics.port
    The port of that endpoint: -1 leaves it closed, 0 takes any free one.
"""
