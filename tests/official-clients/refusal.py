"""What a call is refused with, for all three clients."""


def refused(kind, call):
    """The refusal of this kind; a call that is not refused is a mistake of the stand-in's."""
    try:
        call()
    except kind as refusal:
        return refusal
    raise AssertionError(f"{kind.__name__} was expected")
