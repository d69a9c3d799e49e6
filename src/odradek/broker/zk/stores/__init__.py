"""Parts of `ZkStore`, by subject: each is a store of its own over the same access. Only `store` makes them."""
