"""`format("odradek")`: topics as tables and streams, with the columns and options of Spark's Kafka connector."""
