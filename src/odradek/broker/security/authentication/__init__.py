"""Authentication of connections: TLS of listeners, SASL mechanisms, and the login of a client."""
