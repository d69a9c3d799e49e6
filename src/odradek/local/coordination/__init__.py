"""The embedded coordination server: ZooKeeper's protocol and file formats on one machine, without Java."""
