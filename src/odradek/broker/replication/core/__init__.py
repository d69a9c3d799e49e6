"""Rules of replication: ISR, high watermark, truncation, refused batches. Pure."""
