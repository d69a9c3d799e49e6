"""Planning of reassignments: balancing, forecast, checks, throttles. Pure."""
