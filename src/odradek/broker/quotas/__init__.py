"""How much a client may ask of a broker: rates, buckets, and which limit is whose."""
