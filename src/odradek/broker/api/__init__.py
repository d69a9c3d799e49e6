"""Requests: one handler per API key with its versions, from which ApiVersions is derived; the dispatcher."""
