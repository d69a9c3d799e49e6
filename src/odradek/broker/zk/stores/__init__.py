"""Parts of `ZkStore`, one per subject, all over one `ZnodeAccess`. Only `store` creates them."""
