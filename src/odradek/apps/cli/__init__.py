"""The command line: thin commands over the client; `grammar` parses command lines, `kafka` contains Kafka's own
tools."""
