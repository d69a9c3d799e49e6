"""Key stores, TLS contexts, JAAS settings and SASL messages: the parts of security that brokers and clients share."""
