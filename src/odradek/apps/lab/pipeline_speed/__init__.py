"""The sample pipeline beside a plain PySpark script that does the same work."""
