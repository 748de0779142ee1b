"""Pure, shared parts: rules, keys, limits, the engine, decisions.

Nothing here reads a clock, opens a socket, knows a store or sees a protobuf message: time is an argument.
A module belongs here only when at least two of edge, region and allocator need it.
"""
