"""Clients of the simulation, each by the published rules of the client that it stands for."""
