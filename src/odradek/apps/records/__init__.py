"""Display of records: decoders of keys and values, and filters over both. A filter is data and is never executed."""
