"""Entries of the journal, the cluster that they describe, and the cause of a change. Pure."""
