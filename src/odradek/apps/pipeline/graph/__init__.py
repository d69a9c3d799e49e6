"""Graph of a pipeline: sources, transforms and sinks, with counts of records and rows; for the terminal and as SVG."""
