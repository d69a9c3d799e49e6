"""Formats and arithmetic of credentials and tokens. Pure."""
