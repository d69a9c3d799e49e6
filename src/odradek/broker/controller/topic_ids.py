"""New topic ids, by chance."""

from uuid import UUID, uuid4

from odradek.model.uuid_text import uuid_to_text


def draw_topic_id() -> UUID:
    """Not one whose text begins with a dash: on a command line it would be taken for an option."""
    while uuid_to_text(drawn := uuid4()).startswith("-"):
        continue
    return drawn
