"""Client quotas: rates, buckets, and the limit that applies to each client."""
