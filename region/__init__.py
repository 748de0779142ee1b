"""The authority: exact counters in a store, pools, and the global sum of every quota."""
