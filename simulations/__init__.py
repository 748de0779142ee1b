"""The simulator: the shipped cores in a world of virtual time, with scenarios, measures, checkers and pictures."""
