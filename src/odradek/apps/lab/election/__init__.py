"""The laboratory of elections: leaders elected partition by partition in ZooKeeper, and by one controller.

    odradek lab election --partitions 10,100,1000

`naive` is the design in which every replica of every partition watches the partition's leader and tries to take its
place; `experiment` kills one of three brokers in either design and counts what follows, `report` draws. ZooKeeper's own
servers count for both.
"""
