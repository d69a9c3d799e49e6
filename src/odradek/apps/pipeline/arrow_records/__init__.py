"""Conversion of record batches to Arrow columns, by compiled code."""
