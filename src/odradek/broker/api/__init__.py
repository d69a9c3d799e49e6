"""Requests: one handler per API key, with its versions; the dispatcher. ApiVersions answers from `protocol/api_keys`."""
