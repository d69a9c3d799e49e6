"""Clock, log lines, metrics, scheduler, error codes: what every room needs and none owns."""
