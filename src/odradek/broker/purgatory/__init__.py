"""Purgatory: requests that wait for an event or for their timeout."""
