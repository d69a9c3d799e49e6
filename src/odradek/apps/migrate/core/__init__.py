"""Decisions of a migration: pairs of brokers, steps and checks. Pure."""
