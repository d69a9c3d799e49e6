"""Values of the cluster: partitions, brokers, leader and ISR, the metadata image, replica placement, topic names.
Pure.
"""
