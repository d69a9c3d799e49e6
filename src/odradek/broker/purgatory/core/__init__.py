"""The timing wheel. Pure: the caller brings the time."""
