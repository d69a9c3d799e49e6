"""The timing wheel. Pure: the caller passes the time."""
