"""Benchmarks: `make bench`. Ratios within one run, since machines differ and are noisy."""
