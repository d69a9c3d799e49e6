"""`python -m odradek.native` says whether the compiled inner loop runs, and if not, why."""

from odradek.native.load import description

print(description())  # noqa: T201
