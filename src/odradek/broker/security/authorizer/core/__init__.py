"""ACLs, filters over them, and the decisions that follow from them. Pure."""
