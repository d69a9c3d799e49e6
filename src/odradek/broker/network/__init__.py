"""The wire: sockets in, frames out, answers back in order. Knows nothing of what a frame says."""
