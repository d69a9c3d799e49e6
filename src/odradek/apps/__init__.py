"""Applications that use a cluster; none of them is part of the broker."""
