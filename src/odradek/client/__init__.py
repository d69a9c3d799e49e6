"""A client of the cluster over the protocol: connections, leaders, admin requests, records in and out, groups."""
