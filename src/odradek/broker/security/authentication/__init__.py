"""Authentication of connections: TLS of listeners, SASL mechanisms, and the session that a client has to pass."""
