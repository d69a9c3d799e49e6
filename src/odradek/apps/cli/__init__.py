"""The command line: thin commands over the client; `grammar` parses, `kafka` has the command lines of Kafka's own
tools.
"""
