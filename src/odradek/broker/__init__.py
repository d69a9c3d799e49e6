"""The broker: its engines, and `server`, which starts and stops them in one visible order."""
