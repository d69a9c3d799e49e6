"""The network: accepts connections, reads frames, sends answers in order. It does not look into frames."""
