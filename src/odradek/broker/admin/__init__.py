"""Administration on every broker: writes topics, configs, ACLs, tokens and producer ids to ZooKeeper, on which the
controller and all brokers act."""
