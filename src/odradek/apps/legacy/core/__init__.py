"""Assignment and znodes of the two older designs. Pure."""
