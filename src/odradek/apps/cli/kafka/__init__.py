"""Kafka's own command lines: `odradek kafka-topics …` and its siblings.

Each module has the options of one of Kafka's tools as a table, and turns what was given into calls of the same client
that our own commands use. What is printed is what Kafka 3.9's tool prints; scripts made for it go on working.
"""
