"""Flask views, websockets and pages, on top of :mod:`.rules`, which does no I/O."""
