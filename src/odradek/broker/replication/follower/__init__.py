"""The follower's side: replica fetcher threads, their assignments, connections to leaders."""
