"""Grammar of the command line: declared as the parameters of a function; used to parse, explain and complete.

A command is a function. The types and annotations of its parameters declare its arguments and options:

    def create(name: Annotated[str, Argument()], partitions: Annotated[int, Option("--partitions")] = 1) -> None:

The signature is the whole truth: parsing, `--help` and shell completion come from it. Loads nothing but the standard
library, since every command waits for it.
"""
