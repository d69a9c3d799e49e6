"""Security: principals, SCRAM credentials, delegation tokens, and the authorizer of requests."""
