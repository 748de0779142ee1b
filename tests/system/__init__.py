"""Tests of whole processes, and of real servers of others."""
