"""The controller: one event thread, elected through ZooKeeper, that elects leaders and tells the brokers."""
