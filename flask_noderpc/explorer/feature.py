"""Pages that show a node's chain to people."""

from __future__ import annotations

from ..feature import Feature, PageSet

_PAGES = PageSet(
    blueprint="flask_noderpc.explorer.blueprint:explorer_bp",
    path="/explorer/",
    help="Serve pages that show the chain to people, at /explorer.",
)

FEATURE = Feature(name="explorer", page_sets={"explorer": _PAGES})
