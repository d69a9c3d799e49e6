"""New topic ids, by chance."""

from uuid import UUID, uuid4

from odradek.model.uuid_text import uuid_to_text


def draw_topic_id() -> UUID:
    """Draw an id whose text does not begin with a dash: a command line would take it for an option."""
    while uuid_to_text(drawn := uuid4()).startswith("-"):
        continue
    return drawn
