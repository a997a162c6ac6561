"""A module of your own in a chain like the Cosmos SDK's: vaults that keep coins for a time."""

import json
from dataclasses import dataclass

from flask import Flask

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.cosmos.bank import (
    MESSAGES,
    MODULES,
    Bank,
    Code,
    Coin,
    Context,
    Handler,
    Item,
    MessageType,
    Module,
    QueryContext,
    TxError,
    Values,
    declare,
    declared,
    decode,
    encode,
    event,
    not_found,
    record,
)
from flask_noderpc.cosmos.bank.dev import app_state

STORE, LIMIT, VAULT = b"vaults/", b"\0", b"\1"
REFUSED = Code(2, "the vault is refused", "vaults")

declare("""
message acme.vaults.v1.MsgLock { string owner = 1; Coin! amount = 2; uint64 seconds = 3; }
message acme.vaults.v1.MsgLockResponse { }
message Vault { string owner = 1; Coin! amount = 2; uint64 until = 3; }
message vaults.VaultRequest { string owner = 1; }
message vaults.VaultResponse { Vault! vault = 1; }
""")
KIND = declared("*types.MsgLock", "acme.vaults.v1.MsgLock", signer="owner")
MSG_LOCK = MessageType("/acme.vaults.v1.MsgLock", KIND, amino_name="acme/MsgLock")


@record("Vault")
@dataclass(frozen=True)
class Vault:
    """Coins that their owner gets back at a time, in seconds since 1970."""

    owner: str
    amount: Coin
    until: int = 0


def lock(context: Context, message: Values) -> None:
    """Move coins of the owner to the module's account."""
    store, owner = context.store(STORE), context.codec.parse(message["owner"])
    limit = int(store.get(LIMIT) or b"0")
    if message["seconds"] > limit or store.has(VAULT + owner):
        raise TxError(REFUSED, f"expected at most {limit} seconds, and no other vault")
    context.balances.send_to_module(owner, "vaults", (message["amount"],))
    until = context.environment.time // 10**9 + message["seconds"]
    store.set(VAULT + owner, encode(Vault(message["owner"], message["amount"], until)))
    context.events.append(event("lock", owner=message["owner"], until=str(until)))


def find_vault(ctx: QueryContext) -> bytes:
    """Return the vault of an owner."""
    value = ctx.get(STORE + VAULT + ctx.address(1))
    if value is None:
        raise not_found("the owner has no vault")
    return MESSAGES.encode("vaults.VaultResponse", vault=value)


class VaultsModule(Module):
    """Vaults; the genesis state has ``max_seconds``, the longest time."""

    name = "vaults"
    service = "acme.vaults.v1.Query"
    accounts = {"vaults": ()}
    handlers = (Handler(MSG_LOCK, lock),)
    queries = {"Vault": find_vault}
    routes = "GET /acme/vaults/v1/vaults/{owner} Vault"

    def init_genesis(self, context: Context, state: Item) -> None:
        """Store the longest time."""
        context.store(STORE).set(LIMIT, b"%d" % state["max_seconds"].whole_number())

    def end_block(self, context: Context) -> None:
        """Pay coins back whose time is over."""
        store, now = context.store(STORE), context.environment.time // 10**9
        for key, value in store.iterate(VAULT):
            vault = decode(Vault, value)
            if vault.until <= now:
                store.delete(key)
                owner = context.codec.parse(vault.owner)
                context.balances.send_from_module("vaults", owner, (vault.amount,))


class Vaults(Bank):
    name = "acme-vaults"
    modules = (*MODULES, VaultsModule())


def create_app(folder: str = "instance") -> Flask:
    """Return an app whose chain runs the application, and serves REST."""
    app, state = Flask("own_module"), json.loads(app_state(modules=True))
    app.config["NODERPC_REST"] = True
    chain = EmbeddedChain(
        f"{folder}/vaults.db",
        application=Vaults,
        chain_id="vaults-1",
        app_state=json.dumps(state | {"vaults": {"max_seconds": "3600"}}).encode(),
        dev=True,
    )
    NodeRPC(app, backend=chain, dialect="comet-0.38", dev=True)
    return app
