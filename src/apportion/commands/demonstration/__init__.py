"""The parts of `apportion demo`: real processes, moving traffic, and a referee. Nothing here decides a request."""
