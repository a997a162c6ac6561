"""A message of your own in a chain like the Cosmos SDK's: notes that their authors sign."""

from pathlib import Path

from flask import Flask

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.cosmos.bank import (
    BANK_HANDLERS,
    TEXT,
    Bank,
    Code,
    Context,
    Field,
    Handler,
    Kind,
    MessageType,
    TxError,
    Values,
    event,
)
from flask_noderpc.cosmos.bank.dev import app_state

TOO_LONG = Code(2, "note is too long", "notes")

MSG_WRITE = MessageType(
    "/acme.notes.v1.MsgWrite",
    Kind("*notes.MsgWrite", {1: Field("author", TEXT, signer=True), 2: Field("text", TEXT)}),
    amino_name="acme/MsgWrite",
)


def write(context: Context, message: Values) -> None:
    """Store an author's note in place of the last one."""
    if len(message["text"]) > 100:
        raise TxError(TOO_LONG, f"{len(message['text'])} characters")
    author = context.codec.parse(message["author"])
    context.store(b"notes/").set(author, message["text"].encode())
    context.events.append(event("note", author=message["author"]))


class Notes(Bank):
    """Accounts, balances and notes."""

    name = "acme-notes"
    handlers = (*BANK_HANDLERS, Handler(MSG_WRITE, write))


def create_app(folder: str = "instance") -> Flask:
    """Return an app whose chain runs the application."""
    app = Flask("own_message")
    chain = EmbeddedChain(
        Path(folder) / "notes.db",
        application=Notes,
        chain_id="notes-1",
        # Ten rich accounts, whose mnemonic is public.
        app_state=app_state(),
        dev=True,
    )
    NodeRPC(app, backend=chain, dialect="comet-0.38", dev=True)
    return app
