"""A Kafka client: connections, leaders, admin requests, producing and consuming, groups."""
