"""Breaking a cluster on purpose while clients use it, and judging from what they saw whether it kept its promise."""
