"""Decisions of Delta tables: names of batches, actions of commits, conflicts, compaction. Pure."""
