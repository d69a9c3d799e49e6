"""Decisions of the controller: events in, effects out, state machines as tables. Pure."""
