"""`format("odradek-log")`: the segment files of brokers' log directories as tables, without a broker."""
