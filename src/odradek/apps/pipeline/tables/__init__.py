"""Delta tables of pipelines: committed without a jar, compacted while the pipeline runs, queried, migrated."""
