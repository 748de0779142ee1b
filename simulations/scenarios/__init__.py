"""Texts of scenarios; a person can write more of them."""
