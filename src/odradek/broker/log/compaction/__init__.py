"""The log cleaner: threads that rewrite the dirty part of compacted logs."""
