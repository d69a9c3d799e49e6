"""Rules of the coordination server: tree, watches, sessions, ACLs, transactions and their bytes. Pure."""
