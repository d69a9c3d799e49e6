"""Arithmetic of quotas. Pure."""
