"""From record batches to Arrow columns, by compiled code."""
