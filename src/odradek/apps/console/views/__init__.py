"""Values that the screens show, computed from readings. Pure."""
