"""`Abstract`: a base of abstract classes that `isinstance` is quick with.

An `ABC` asks Python code whether others were registered as its subclasses, at each `isinstance`. A search
asks for the kinds of its queries and sort keys up to a hundred times.
"""

from abc import ABCMeta

__all__ = ["Abstract"]


class _Plain(ABCMeta):
    """Its classes have those subclasses alone that derive from them."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class Abstract(metaclass=_Plain):
    """Classes below it cannot be made while they have abstract methods, as those below an `ABC`."""
