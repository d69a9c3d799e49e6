"""Grammar of the command line: declared as the parameters of a function, parsed, explained, completed.

A command is a function whose parameters say by their types and annotations what may be typed:

    def create(name: Annotated[str, Argument()], partitions: Annotated[int, Option("--partitions")] = 1) -> None:

The signature is the whole truth: parsing, `--help` and shell completion come from it. Loads nothing but the standard
library, since every command waits for it.
"""
