"""Replicas of this broker: `replica_manager` changes roles, `partition` is one replica, `partition_table` serves
requests.
"""
