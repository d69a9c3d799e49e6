"""The flight recorder: events and decisions of each broker, in order and with their causes, in files of bounded size.

`Recorder` writes, `read_journals` merges the journals of several brokers, `Picture` rebuilds the controller's state at
any moment, `changes_of` explains changes of a partition's leader or ISR, `Rebalances` those of a group.
"""
