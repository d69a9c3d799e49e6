"""Disk formats, each declared once: file names, index entries, snapshots, checkpoints, directory identity. Pure."""
