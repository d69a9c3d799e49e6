"""Services for every package: clock, log lines, metrics, scheduler, error codes, threads, configuration."""
