"""The log directories of a broker: placement, moves between directories, checkpoints, failed directories."""
