"""The command line `ptxboard`: one module per command, each with `add_to` and `run`."""
