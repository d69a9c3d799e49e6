"""State of coordinators in partitions of an internal topic: written, settled in order, replayed by the next leader."""
