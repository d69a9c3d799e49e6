"""The controller: elected through ZooKeeper; its event thread elects leaders and sends the result to the brokers."""
