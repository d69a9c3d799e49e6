"""The compiled inner loop: optional C twins of Python functions that run per batch. `load` chooses between them."""
