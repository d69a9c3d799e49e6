"""The compiled inner loop: per batch, in C, what the rooms above do in Python too; optional. `load` chooses."""
