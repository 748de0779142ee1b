"""Apportion, a hierarchical rate limiter: the public names."""
