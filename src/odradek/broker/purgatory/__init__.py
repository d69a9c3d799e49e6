"""Purgatory: requests that wait for an event, or for their time to be up."""
