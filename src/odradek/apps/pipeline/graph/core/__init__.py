"""Nodes, edges and places of a pipeline's graph. Pure."""
