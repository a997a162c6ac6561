"""Use cosmpy's LedgerClient over REST.

    python send.py URL CHAIN_ID MNEMONIC

MNEMONIC is the one that all accounts of a development chain come from; cosmpy uses its first
account.
"""

import json
import sys
from collections.abc import Callable

from cosmpy.aerial.client import LedgerClient, NetworkConfig
from cosmpy.aerial.tx import TxFee
from cosmpy.aerial.wallet import LocalWallet

url, chain_id, mnemonic = sys.argv[1:]
config = NetworkConfig(chain_id, 0.025, "stake", "stake", url=f"rest+{url}")
client = LedgerClient(config, query_interval_secs=1)
alice = LocalWallet.from_mnemonic(mnemonic, "cosmos")
stranger = LocalWallet.generate("cosmos").address()


def balances() -> None:
    coins = {
        coin.denom: int(coin.amount) for coin in client.query_bank_all_balances(alice.address())
    }
    assert set(coins) == {"stake", "token"}, coins
    assert client.query_bank_balance(alice.address(), "token") == coins["token"]
    assert client.query_bank_balance(stranger, "token") == 0


def blocks() -> None:
    latest = client.query_latest_block()
    assert latest.chain_id == chain_id, latest
    assert client.query_block(latest.height).height == latest.height


def send_at_a_simulated_fee() -> None:
    before = client.query_account(alice.address()).sequence
    sent = client.send_tokens(stranger, 7, "token", alice, memo="by cosmpy")
    sent.wait_to_complete()
    assert sent.response is not None
    assert sent.response.code == 0, sent.response
    assert client.query_tx(sent.tx_hash).height == sent.response.height
    assert client.query_bank_balance(stranger, "token") == 7
    assert client.query_account(alice.address()).sequence == before + 1


def send_at_a_fixed_fee() -> None:
    fee = TxFee("2000stake", gas_limit=100_000)
    client.send_tokens(stranger, 5, "token", alice, fee=fee).wait_to_complete()
    assert client.query_bank_balance(stranger, "token") == 12


def more_than_there_is() -> None:
    try:
        client.send_tokens(stranger, 10**18, "token", alice)
    except RuntimeError as error:
        if "insufficient funds" in str(error):
            return
        raise
    raise AssertionError("it was sent")


STEPS: dict[str, Callable[[], None]] = {
    "balances": balances,
    "blocks": blocks,
    "send at a simulated fee": send_at_a_simulated_fee,
    "send at a fixed fee": send_at_a_fixed_fee,
    "more than there is": more_than_there_is,
}

for name, step in STEPS.items():
    step()
    print(json.dumps({"step": name}))
