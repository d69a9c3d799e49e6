"""`python -m odradek`: the same as the `odradek` command."""

from odradek.apps.cli.main import main

main()
