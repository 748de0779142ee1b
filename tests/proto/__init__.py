"""The wire: what is said arrives as it was said, and nothing that a peer sends does harm."""
