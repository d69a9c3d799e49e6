"""Kafka's own command lines: `odradek kafka-topics …` and its siblings.

Each module has the options of one of Kafka's tools as a table, and turns the given options into calls of the client
that our own commands use. The output is that of Kafka 3.9's tool, so that scripts for it keep working.
"""
