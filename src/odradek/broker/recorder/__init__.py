"""The flight recorder: what each broker saw and decided, in order and with causes, kept in bounded files (row G2).

`Recorder` writes, `read_journals` reads what several brokers wrote as one story, `Picture` rebuilds what the controller
knew at any moment of it, `changes_of` tells why a partition's leader or ISR changed, `Rebalances` why a group did.
"""
