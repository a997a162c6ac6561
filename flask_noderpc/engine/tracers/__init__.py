"""Tracers: what each shows of a message that runs, as geth's tracers of the same names do."""
