"""Checkers: conditions that must hold after each step of a story, and at its end. Each can be tested without a
cluster."""
