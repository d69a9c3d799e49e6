"""The log of a partition on disk: segments, indexes, producer state, leader epochs, recovery, compaction,
directories.
"""
