"""An EVM chain behind HTTP, whose blocks the test produces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eth_account.signers.local import LocalAccount

from flask_noderpc import EmbeddedChain, jsoncodec
from flask_noderpc.backends.base import location
from flask_noderpc.backends.base.capabilities import MempoolLimits
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.state import ChainRules, EvmRuntime, ExecutionLimits
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import ACCOUNT, CHAIN_ID, TO, signed
from tests.helpers.until import PATIENCE, PATIENT

from .contracts import GWEI, alloc


class Running:
    """A chain with its EVM layer; ``settings`` are the settings of the mount."""

    def __init__(
        self,
        folder: Path,
        *,
        call_s: float = 4 * PATIENCE,
        waiting: int = 32,
        mempool: MempoolLimits | None = None,
        app_state: Any = None,
        forks: ChainRules | None = None,
        dev: bool = False,
        **settings: Any,
    ) -> None:
        path = folder / "noderpc.db"
        limits = ExecutionLimits(executors=1, waiting=waiting, call_s=call_s)
        self.clock = ManualClock()
        self.chain = EmbeddedChain(
            path,
            clock=self.clock,
            produce=False,
            application=lambda state: EvmApplication(
                state,
                EvmRuntime(state, location.location_of(path).path, limits, keeps_names=dev),
                CHAIN_ID,
                dev=dev,
                rules=forks,
            ),
            app_state=jsoncodec.encode(app_state or {"alloc": alloc()}),
            limits=mempool,
        )
        try:
            self.chain.start()
        except BaseException:
            self.chain.close()
            raise
        names = "eth,net,web3,txpool,debug"
        settings = {"evm_api": names, **PATIENT, **settings}
        app = app_for(self.chain, json_rpc_enable=True, **settings)
        self._client = app.test_client()

    def close(self) -> None:
        self.chain.close()

    def reply(self, method: str, params: tuple[Any, ...]) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply: dict[str, Any] = self._client.post("/evm", json=call).get_json()
        return reply

    def ask(self, method: str, *params: Any) -> Any:
        """Return a result."""
        reply = self.reply(method, params)
        assert "result" in reply, reply
        return reply["result"]

    def error(self, method: str, *params: Any) -> dict[str, Any]:
        """Return an error."""
        reply = self.reply(method, params)
        assert "error" in reply, reply
        found: dict[str, Any] = reply["error"]
        return found

    def number(self, method: str, *params: Any) -> int:
        return int(self.ask(method, *params), 16)

    def send(self, raw: bytes) -> str:
        """Send a transaction; return its hash."""
        found: str = self.ask("eth_sendRawTransaction", f"0x{raw.hex()}")
        return found

    def refused(self, raw: bytes) -> str:
        """Return the error of a refused transaction."""
        error = self.error("eth_sendRawTransaction", f"0x{raw.hex()}")
        assert error["code"] == -32000
        message: str = error["message"]
        return message

    def mine(self, *raws: bytes) -> list[dict[str, Any]]:
        """Send transactions and make a block; return their receipts."""
        hashes = [self.send(raw) for raw in raws]
        self.clock.advance(1.0)
        self.chain.produce()
        return [self.ask("eth_getTransactionReceipt", own) for own in hashes]


def tx(nonce: int = 0, account: LocalAccount = ACCOUNT, **fields: Any) -> bytes:
    """Return a signed transaction: a transfer of one wei, unless fields are given."""
    made: dict[str, Any] = {
        "type": 2,
        "nonce": nonce,
        "gas": 21_000,
        "to": TO,
        "value": 1,
        "maxFeePerGas": 3 * GWEI,
        "maxPriorityFeePerGas": GWEI,
        "chainId": CHAIN_ID,
        **fields,
    }
    made["to"] = made["to"] and to_checksum(bytes.fromhex(made["to"][2:]))
    return signed({k: v for k, v in made.items() if v is not None}, account)
