"""Settings of a broker whose cluster directory was moved or copied: the paths in them follow it."""

from collections.abc import Mapping
from pathlib import Path


def follow_directory(properties: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the settings of the broker in `directory`, with paths of its cluster as they are now.

    `up` wrote them as absolute paths. Log directories that the user chose stay: they have logs, and there is no
    server.properties beside them.
    """
    own, named = directory / "logs", Path(properties.get("log.dirs", ""))
    is_named_alike = named.is_absolute() and named.parts[-2:] == own.parts[-2:]
    has_logs = (own / "meta.properties").exists()
    is_chosen = (named / "meta.properties").exists() and not (named.parent / "server.properties").exists()
    if named == own or not is_named_alike or not has_logs or is_chosen:
        return dict(properties)
    before, now = f"{named.parent.parent}/", f"{directory.parent}/"
    return {key: now + text[len(before) :] if text.startswith(before) else text for key, text in properties.items()}
