"""Records for people: decoders of keys and values, and filters over both. Data, never code: nothing typed is run."""
