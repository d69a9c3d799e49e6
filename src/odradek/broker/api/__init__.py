"""Requests: one handler per API key, with its versions; the dispatcher. ApiVersions is `protocol/api_keys`."""
