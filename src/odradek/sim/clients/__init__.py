"""Simulated clients: each follows the published rules of one real client."""
