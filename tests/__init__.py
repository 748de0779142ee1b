"""Tests, which mirror the code."""
