"""Where requests wait for something to happen, or for their time to be up."""
