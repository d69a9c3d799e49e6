"""`odradek audit`: every replica's files read as tables and compared, as a Spark job."""
