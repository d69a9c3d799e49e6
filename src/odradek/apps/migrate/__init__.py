"""Migration of a running cluster from Apache Kafka brokers to Odradek brokers, or back, on one ZooKeeper.

The new brokers join the cluster of the old ones. Checks come first; then each old broker's replicas move to its
successor, topic data before the coordinators' topics, and preferred leaders are elected after each step. The old
brokers are stopped at the end, the controller last.
"""
