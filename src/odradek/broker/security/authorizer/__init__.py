"""The authorizer: which principal may do what to which resource, by ACLs; the authorizer log and the audit log."""
