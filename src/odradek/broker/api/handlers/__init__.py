"""One module per API key, named like it. Importing a module registers its handler: see `registry`."""
