"""The `apportion` program, one module for each command."""
