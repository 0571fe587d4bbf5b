"""Benchmarks: ratios measured side by side in one run, on data made on the spot."""
