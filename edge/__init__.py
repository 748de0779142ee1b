"""The data plane: the agent beside the callers, its front doors, and the limiter inside a process."""
