"""ACLs, filters over ACLs, and decisions based on ACLs. Pure."""
