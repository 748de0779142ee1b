"""The errors that Apportion raises. One base; each class says whether trying again can help."""

from __future__ import annotations


class ApportionError(Exception):
    """Base of every error that Apportion raises itself; its text is written for a person."""

    transient: bool = False
    """Whether the same call may succeed later without anybody changing anything."""


class InputError(ApportionError):
    """The caller's input is wrong: a rules file, a flag, a request. The text names the thing and the fix."""


class RulesError(InputError):
    """A rules file was refused; `problems` holds every problem found, in the order of the file."""

    def __init__(self, problems: tuple[object, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class UnavailableError(ApportionError):
    """A service that is needed could not be reached, or did not answer in time."""

    transient = True


class ProtocolError(ApportionError):
    """The peer broke the protocol of design section 5; the connection is closed, nothing was changed."""


class StoreError(ApportionError):
    """The region's store failed; whether the operation took effect is unknown unless the text says so."""

    transient = True
