"""Coordinators, whose state is rebuilt from an internal topic."""
