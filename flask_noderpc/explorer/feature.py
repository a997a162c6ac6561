"""Feature ``explorer``: web pages that show a node's chain."""

from __future__ import annotations

from ..feature import Feature, PageSet

_PAGES = PageSet(
    blueprint="flask_noderpc.explorer.blueprint:explorer_bp",
    path="/explorer/",
    help="Serve a block explorer at /explorer.",
)

FEATURE = Feature(name="explorer", page_sets={"explorer": _PAGES})
