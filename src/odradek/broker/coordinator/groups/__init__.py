"""The group coordinator: membership, rebalances and offsets in `__consumer_offsets`."""
