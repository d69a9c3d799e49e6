"""The parts of `ZkStore`, by subject. Nobody but `odradek.broker.zk.store` imports them."""
