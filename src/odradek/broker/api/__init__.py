"""Requests: the dispatcher, and the checks and answers that handlers share. `protocol/api_keys` lists the versions."""
