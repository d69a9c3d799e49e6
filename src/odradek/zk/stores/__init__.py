"""The parts of `ZkStore`, by subject. Nobody but `odradek.zk.store` imports them."""
