"""Rules of the log: batch validation, producer sequences, retention, what compaction keeps. Pure."""
