"""The same read by Spark's own connector, by `format("odradek")` and from the files, in turn."""
