"""The eight workloads of docs/performance.md, at 50 edges and 1,000/s: `make sim-full`."""
