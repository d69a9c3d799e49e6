"""Batches of coordinator state as bytes. Pure."""
