"""Benchmarks, which print ratios within one run; they are not part of the tests."""
