"""Kafka's messages: one module per API, one line per field with its type and versions."""
