"""ZooKeeper: the session and its watches, the path and content of each znode, fenced reads and writes, registration."""
