"""A page of the app's own: the latest blocks and transactions, and a form to send one.

The page comes with its rows; from then on ``static/explorer.js`` adds what the node's
websocket tells, in the same form.
"""

from __future__ import annotations

from flask import Blueprint, abort, current_app, render_template, request

from flask_noderpc import NodeRPCError, get_backend, may_write

explorer_bp = Blueprint(
    "explorer",
    __name__,
    template_folder="templates",
    static_folder="static",
    static_url_path="/explorer/static",
)

SHOWN = 20
LONGEST = 100
"""Characters of a transaction that are shown."""


@explorer_bp.get("/explorer")
def explorer(message: str = "") -> str:
    """The latest blocks and the latest transactions."""
    chain = get_backend()
    latest = chain.latest_height()
    metas = chain.block_metas(max(1, latest - SHOWN + 1), latest) if latest else ()
    txs = [(tx.height, decoded(tx.tx)) for tx in chain.latest_txs(SHOWN)]
    return render_template(
        "explorer.html",
        blocks=metas,
        txs=txs,
        message=message,
        shown=SHOWN,
        longest=LONGEST,
        has_ethereum=has_ethereum(),
        has_pairs=has_pairs(),
    )


@explorer_bp.get("/explorer/ethereum")
def ethereum() -> str:
    """The latest Ethereum transactions; the page asks the EVM layer for them itself."""
    if not has_ethereum():
        abort(404)
    return render_template("ethereum.html", shown=SHOWN)


def decoded(tx: bytes) -> str:
    """A transaction as its text, or as hex where it is none."""
    text = tx.decode(errors="replace")
    return text if text.isprintable() and "\ufffd" not in text else f"0x{tx.hex()}"


def has_pairs() -> bool:
    """Return true if transactions are ``name=value``, and not Ethereum's."""
    return bool(current_app.config.get("NODERPC_APPLICATION") != "evm")


def has_ethereum() -> bool:
    """Whether the node's EVM layer is served."""
    return "noderpc.evm" in current_app.view_functions


@explorer_bp.post("/explorer")
def send() -> str:
    """Send ``name=value`` to the chain."""
    if not has_pairs():
        abort(404)
    if not may_write():
        # As the node itself refuses it: the form of another site's page.
        abort(403)
    tx = f"{request.form.get('name', '')}={request.form.get('value', '')}"
    try:
        refused = get_backend().mempool.submit(tx.encode()).code
    except NodeRPCError as error:
        return explorer(str(error))
    return explorer("not a name and a value" if refused else f"sent {tx}")
