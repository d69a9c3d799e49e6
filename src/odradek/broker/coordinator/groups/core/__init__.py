"""Decisions of the group coordinator: joins, syncs, generations, offsets. Pure."""
