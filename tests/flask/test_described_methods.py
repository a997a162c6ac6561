"""Tests that every JSON-RPC method can be called, and matches ``rpc.discover``."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from flask_noderpc import COMETBFT_ROUTES, DIALECTS, EmbeddedChain
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.ethereum.api import NAMESPACES
from flask_noderpc.ethereum.rpc.dev.routes import DEV_ROUTES, REASONS
from flask_noderpc.ethereum.rpc.routes import EVM_ROUTES
from flask_noderpc.ethereum.settings import DEV_CHAIN_ID
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.comet.v038_schemas import Evidence
from flask_noderpc.wire.schema import compiled
from tests.chain.misbehavior import double_vote
from tests.ethereum.protocol.signing import ACCOUNT, TO
from tests.ethereum.rpc.contract import CODE, calling
from tests.ethereum.rpc.dev.fixtures import FIRST, TYPED, chain_of, dev_app
from tests.ethereum.rpc.dev.token import TOKEN, TOKEN_ADDRESS
from tests.ethereum.rpc.trace_chain import transaction
from tests.helpers.http import client_call
from tests.http import chain


def base64(text: bytes) -> str:
    return b64encode(text).decode()


# A transaction that one call sends is visible in later calls as pending. Strings with a $ stand
# for values of the chain.
NODE_CALLS: dict[str, list[Any]] = {
    "health": [{}, [], None],
    "status": [{}],
    "net_info": [{}],
    "blockchain": [{}, {"minHeight": "2", "maxHeight": "3"}],
    "block": [{}, *({"height": str(height)} for height in range(1, 8))],
    "block_by_hash": [{"hash": "$block64"}],
    "block_results": [{"height": str(height)} for height in range(1, 8)],
    "commit": [{"height": str(height)} for height in range(1, 8)],
    "validators": [{"height": "1", "page": "1", "per_page": "2"}],
    "genesis": [{}],
    "genesis_chunked": [{"chunk": "0"}],
    "consensus_params": [{"height": "2"}],
    "broadcast_tx_sync": [{"tx": base64(b"sync=1")}],
    "broadcast_tx_async": [{"tx": base64(b"async=1")}],
    "unconfirmed_txs": [{"limit": "1"}],
    "num_unconfirmed_txs": [{}],
    "tx": [{"hash": "$tx64"}, {"hash": "$tx64", "prove": True}],
    "check_tx": [{"tx": base64(b"a=1")}],
    "abci_info": [{}],
    "abci_query": [{"path": "", "data": "6e616d65", "height": "0", "prove": False}],
    "header": [{}, {"height": "2"}],
    "header_by_hash": [{"hash": "$block"}],
    "broadcast_tx_commit": [{"tx": base64(b"commit=1")}],
    "broadcast_evidence": [{"evidence": "$evidence"}],
    "consensus_state": [{}],
    "dump_consensus_state": [{}],
    "tx_search": [{"query": "tx.height>0", "prove": True, "page": "1", "order_by": "asc"}],
    "block_search": [{"query": "block.height>0", "per_page": "2"}],
    "events": [{"filter": {"query": "tm.event='Tx'"}, "wait_time": "1ms"}],
    "dial_seeds": [{"seeds": [chain.PEER]}],
    "dial_peers": [{"peers": [chain.PEER], "persistent": True}],
    "unsafe_flush_mempool": [{}],
    "rpc.discover": [{}],
}


def strict(document: Any) -> Any:
    """Return the document without additional members, so that every member must be
    described."""
    for schema in document["components"]["schemas"].values():
        schema["additionalProperties"] = False
    return document


def assert_fits(value: Any, schema: Any, document: Any) -> None:
    Draft202012Validator({"allOf": [schema], "components": document["components"]}).validate(
        value
    )


def assert_described(method: Any, params: Any, result: Any, document: Any) -> None:
    """Check that the parameters and the result match the document."""
    assert method["summary"], method["name"]
    specs = method["params"]
    given = (
        params
        if isinstance(params, dict)
        else dict(zip((spec["name"] for spec in specs), params or [], strict=False))
    )
    assert given.keys() <= {spec["name"] for spec in specs}
    assert given.keys() >= {spec["name"] for spec in specs if spec["required"]}
    for spec in specs:
        if spec["name"] in given:
            assert_fits(given[spec["name"]], spec["schema"], document)
    assert_fits(result, method["result"]["schema"], document)


def evidence_of(backend: chain.PeeredBackend, dialect: str) -> Any:
    """Return evidence of an offence that is in no block; in 1.0 its members have other
    names."""
    shown = compiled(Evidence)(double_vote(backend, PrivateKey(b"\x02" * 32), height=2))
    if dialect == "comet-1.0":
        for name in ("TotalVotingPower", "ValidatorPower", "Timestamp"):
            own = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
            shown["value"][own] = shown["value"].pop(name)
    return shown


def resolved(value: Any, known: dict[str, Any]) -> Any:
    """Return a value with its strings that begin with $ replaced."""
    match value:
        case str() if value.startswith("$"):
            return known[value]
        case dict():
            return {resolved(k, known): resolved(v, known) for k, v in value.items()}
        case list():
            return [resolved(each, known) for each in value]
    return value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_method_of_the_node_is_as_described(tmp_path: Path, dialect: str) -> None:
    with (
        closing(chain.backend(tmp_path)) as backend,
        closing(
            EmbeddedChain(tmp_path / "making.db", schedule=BlockSchedule(interval_s=0.05))
        ) as making,
    ):
        client = app_for(backend, dialect=dialect, rpc_unsafe=True).test_client()
        # The chain that has everything makes no blocks.
        maker = app_for(making, dialect=dialect).test_client()
        document = strict(client_call(client, "rpc.discover")["result"])
        methods = {method["name"]: method for method in document["methods"]}
        omits_routes = DIALECTS[dialect].omits_routes
        assert methods.keys() == {
            *(
                route.name
                for route in COMETBFT_ROUTES + UNSAFE_ROUTES
                if route.name not in omits_routes
            ),
            "rpc.discover",
        }
        own_hash = backend.reads.block_meta(2).block_id.hash
        known = {
            "$block": own_hash.hex(),
            "$block64": base64(own_hash),
            "$tx64": base64(tx_hash(chain.TX)),
            "$evidence": evidence_of(backend, dialect),
        }
        for name in [name for name in NODE_CALLS if name in methods]:
            for params in NODE_CALLS[name]:
                given = resolved(params, known)
                node = maker if name == "broadcast_tx_commit" else client
                reply = client_call(node, name, given)
                assert "result" in reply, (name, given, reply)
                assert_described(methods[name], given, reply["result"], document)


def test_every_method_has_example_params() -> None:
    served = {route.name for route in COMETBFT_ROUTES + UNSAFE_ROUTES}
    assert NODE_CALLS.keys() == served | {"rpc.discover"}


BUMP = "0x" + calling("bump", 5).hex()
CALL = {"from": FIRST, "to": "$contract", "data": BUMP}
TRANSFER = {"from": FIRST, "to": TO, "value": "0x1", "gas": "0x5208"}
WORD = "0x" + "00" * 31 + "2a"
ALL_API = ",".join(NAMESPACES)

# "$" and a method stand for the result of that method before.
EVM_CALLS: dict[str, list[list[Any]]] = {
    "rpc_modules": [[]],
    "rpc.discover": [[]],
    "web3_clientVersion": [[]],
    "web3_sha3": [["0x00"]],
    "net_version": [[]],
    "net_listening": [[]],
    "net_peerCount": [[]],
    "eth_chainId": [[]],
    "eth_networkId": [[]],
    "eth_blockNumber": [[]],
    "eth_syncing": [[]],
    "eth_capabilities": [[]],
    "eth_config": [[]],
    "eth_coinbase": [[]],
    "eth_accounts": [[]],
    "eth_mining": [[]],
    "eth_hashrate": [[]],
    "eth_protocolVersion": [[]],
    "eth_getBlockByNumber": [["earliest", True], ["$height", True], ["latest", False]],
    "eth_getBlockByHash": [["$block", True], ["$block", False]],
    "eth_getHeaderByNumber": [["latest"]],
    "eth_getHeaderByHash": [["$block"]],
    "eth_getBlockTransactionCountByNumber": [["$height"]],
    "eth_getBlockTransactionCountByHash": [["$block"]],
    "eth_getBlockReceipts": [["$height"], ["$block"], [{"blockHash": "$block"}]],
    "eth_getUncleCountByBlockNumber": [["latest"]],
    "eth_getUncleCountByBlockHash": [["$block"]],
    "eth_getUncleByBlockNumberAndIndex": [["latest", "0x0"]],
    "eth_getUncleByBlockHashAndIndex": [["$block", "0x0"]],
    "eth_getTransactionByHash": [["$tx"], ["$creation"], ["$waiting"]],
    "eth_getTransactionByBlockNumberAndIndex": [["$height", "0x0"]],
    "eth_getTransactionByBlockHashAndIndex": [["$block", "0x1"]],
    "eth_getTransactionReceipt": [["$tx"], ["$creation"]],
    "eth_getTransactionLogs": [["$tx"]],
    "eth_getRawTransactionByHash": [["$tx"]],
    "eth_getRawTransactionByBlockNumberAndIndex": [["$height", "0x0"]],
    "eth_getRawTransactionByBlockHashAndIndex": [["$block", "0x0"]],
    "eth_getTransactionBySenderAndNonce": [[FIRST, "0x1"]],
    "eth_pendingTransactions": [[]],
    "eth_getPendingTransactions": [[]],
    "eth_gasPrice": [[]],
    "eth_maxPriorityFeePerGas": [[]],
    "eth_baseFee": [[]],
    "eth_blobBaseFee": [[]],
    "eth_feeHistory": [["0x2", "latest", [25, 75]], [2, "latest"]],
    "eth_getLogs": [[{"fromBlock": "earliest"}], [{"blockHash": "$block"}]],
    "eth_newFilter": [[{"fromBlock": "earliest"}]],
    "eth_newBlockFilter": [[]],
    "eth_newPendingTransactionFilter": [[], [True]],
    "eth_getFilterLogs": [["$eth_newFilter"]],
    "eth_getFilterChanges": [["$eth_newFilter"], ["$eth_newBlockFilter"]],
    "eth_uninstallFilter": [["$eth_newFilter"]],
    "eth_getBalance": [[FIRST, "latest"], [FIRST]],
    "eth_getTransactionCount": [[FIRST, "pending"]],
    "eth_getCode": [["$contract", "latest"]],
    "eth_getStorageAt": [["$contract", "0x0", "latest"]],
    "eth_getAccount": [["$contract", "latest"]],
    "eth_getAccountInfo": [["$contract", "latest"]],
    "eth_getStorageValues": [[{"$contract": ["0x0"]}]],
    "eth_getProof": [["$contract", ["0x0", WORD], "latest"]],
    "eth_call": [[CALL, "latest"], [CALL, "latest", {FIRST: {"balance": "0x1"}}]],
    "eth_estimateGas": [[CALL]],
    "eth_fillTransaction": [[TRANSFER]],
    "eth_createAccessList": [[CALL, "latest"]],
    "eth_simulateV1": [[{"blockStateCalls": [{"calls": [CALL]}]}, "latest"]],
    "txpool_status": [[]],
    "txpool_content": [[]],
    "txpool_contentFrom": [[FIRST]],
    "txpool_inspect": [[]],
    "debug_getRawHeader": [["latest"]],
    "debug_getRawBlock": [["$height"]],
    "debug_getRawReceipts": [["$block"]],
    "debug_getHeaderRlp": [[1]],
    "debug_getBlockRlp": [[1]],
    "debug_printBlock": [[1]],
    "debug_getBadBlocks": [[]],
    "debug_codeByHash": [[WORD]],
    "debug_preimage": [["$code_hash"]],
    "debug_getRawTransactions": [["$block"]],
    "debug_getRawTransaction": [["$tx"]],
    "debug_traceTransaction": [["$tx"], ["$tx", {"tracer": "callTracer"}]],
    "debug_traceCall": [[CALL, "latest"], [CALL, "latest", {"tracer": "callTracer"}]],
    "debug_traceBlock": [["$debug_getRawBlock"]],
    "debug_traceBlockByNumber": [["$height"]],
    "debug_traceBlockByHash": [["$block", {"tracer": "callTracer"}]],
    "erigon_blockNumber": [[], ["earliest"]],
    "erigon_getHeaderByNumber": [["$height"]],
    "erigon_getHeaderByHash": [["$block"]],
    "trace_block": [["$height"]],
    "trace_transaction": [["$tx"]],
    "trace_get": [["$tx", ["0x0"]]],
    "trace_filter": [[{"fromBlock": "$height"}]],
    "trace_replayTransaction": [["$tx", ["trace"]]],
    "trace_replayBlockTransactions": [["$height", ["trace", "stateDiff", "vmTrace"]]],
    "trace_call": [[CALL, ["trace"]], [CALL, ["vmTrace"], "latest"]],
    "trace_callMany": [[[[CALL, ["stateDiff"]], [CALL, []]], "latest"]],
    "ots_getApiLevel": [[]],
    "ots_hasCode": [["$contract"], [FIRST, 1]],
    "ots_getContractCreator": [["$contract"]],
    "ots_getTransactionBySenderAndNonce": [[FIRST, "0x1"]],
    "ots_traceTransaction": [["$tx"], ["$creation"]],
    "ots_getInternalOperations": [["$tx"]],
    "ots_getTransactionError": [["$tx"]],
    "ots_getBlockDetails": [["$height"], [1]],
    "ots_getBlockDetailsByHash": [["$block"]],
    "ots_getBlockTransactions": [["$height", 0, 25]],
    "ots_searchTransactionsBefore": [[FIRST, 0, 25]],
    "ots_searchTransactionsAfter": [[FIRST, "0x0", "0x19"]],
    "noderpc_getTransactionsByAddress": [
        [FIRST],
        [FIRST, {"limit": 1, "order": "asc", "internal": False, "fromBlock": "0x1"}],
    ],
    "eth_signTransaction": [[{**TRANSFER, "nonce": "0x9", "gasPrice": "0x77359400"}]],
    "eth_requestAccounts": [[]],
    "eth_sign": [[FIRST, "0x00"]],
    "personal_sign": [["0x00", FIRST], ["0x00", FIRST, "password"]],
    "eth_signTypedData": [[FIRST, TYPED]],
    "eth_signTypedData_v3": [[FIRST, TYPED]],
    "eth_signTypedData_v4": [[FIRST, TYPED], [FIRST, json.dumps(TYPED)]],
    "eth_sendTransaction": [[TRANSFER]],
    "eth_sendUnsignedTransaction": [[TRANSFER]],
    "hardhat_dropTransaction": [["$eth_sendTransaction"]],
    "anvil_dropTransaction": [["$waiting"]],
    "anvil_removePoolTransactions": [[FIRST]],
    "hardhat_dropAllTransactions": [[]],
    "anvil_dropAllTransactions": [[]],
    "anvil_impersonateAccount": [[TO]],
    "hardhat_impersonateAccount": [[TO]],
    "anvil_stopImpersonatingAccount": [[TO]],
    "hardhat_stopImpersonatingAccount": [[TO]],
    "anvil_autoImpersonateAccount": [[True]],
    "hardhat_autoImpersonateAccount": [[False]],
    "evm_mine": [[], [{"blocks": 2}]],
    "anvil_evmMine": [[]],
    "evm_mine_detailed": [[]],
    "anvil_mine_detailed": [[]],
    "hardhat_mine": [["0x2", "0x1"]],
    "anvil_mine": [[1]],
    "evm_snapshot": [[]],
    "evm_revert": [["$evm_snapshot"]],
    "anvil_snapshot": [[]],
    "anvil_revert": [["$anvil_snapshot"]],
    "evm_increaseTime": [["0x1"]],
    "anvil_increaseTime": [[1]],
    "evm_setTime": [["$later"]],
    "anvil_setTime": [["$later"]],
    "evm_setNextBlockTimestamp": [["$later"]],
    "anvil_setNextBlockTimestamp": [["$later"]],
    "hardhat_setNextBlockBaseFeePerGas": [["0x3b9aca00"]],
    "anvil_setNextBlockBaseFeePerGas": [["0x3b9aca00"]],
    "anvil_dumpState": [[]],
    "anvil_loadState": [["$anvil_dumpState"]],
    "hardhat_dumpState": [[]],
    "hardhat_loadState": [["$anvil_dumpState"]],
    "hardhat_setCoinbase": [[FIRST]],
    "anvil_setCoinbase": [[FIRST]],
    "anvil_setChainId": [[DEV_CHAIN_ID]],
    "hardhat_setPrevRandao": [[WORD]],
    "anvil_setNextBlockPrevRandao": [[WORD]],
    "evm_setBlockGasLimit": [["0xe4e1c0"], [15_000_000]],
    "anvil_setBlockGasLimit": [["0xe4e1c0"]],
    "hardhat_getAutomine": [[]],
    "anvil_getAutomine": [[]],
    "evm_setIntervalMining": [[0]],
    "anvil_setIntervalMining": [[0]],
    "anvil_getIntervalMining": [[]],
    "anvil_setBlockTimestampInterval": [[1]],
    "anvil_removeBlockTimestampInterval": [[]],
    "hardhat_setBalance": [[ACCOUNT.address, "0xde0b6b3a7640000"]],
    "anvil_setBalance": [[ACCOUNT.address, "0xde0b6b3a7640000"]],
    "hardhat_addBalance": [[ACCOUNT.address, "0x1"]],
    "tenderly_addBalance": [[ACCOUNT.address, "0x1"]],
    "tenderly_setBalance": [[ACCOUNT.address, "0xde0b6b3a7640000"]],
    "anvil_addBalance": [[ACCOUNT.address, "0x1"]],
    "hardhat_setNonce": [[TO, "0x1"]],
    "anvil_setNonce": [[TO, 2]],
    "evm_setAccountNonce": [[TO, 3]],
    "hardhat_setCode": [[TO, "0x00"]],
    "anvil_setCode": [[TO, "0x"]],
    "hardhat_setStorageAt": [[TO, "0x0", WORD]],
    "anvil_setStorageAt": [[TO, "0x1", WORD]],
    "anvil_setAutomine": [[False]],
    "evm_setAutomine": [[True]],
    "trace_rawTransaction": [["$raw0", ["trace"]]],
    # The call waits for its block, which is now made at once.
    "eth_sendRawTransaction": [["$raw0"]],
    "eth_sendRawTransactionSync": [["$raw1"]],
    "eth_sendTransactionSync": [[TRANSFER]],
    "anvil_setLoggingEnabled": [[True]],
    "hardhat_setLoggingEnabled": [[True]],
    "anvil_setRpcUrl": [["http://127.0.0.1:1"]],
    "anvil_getBlobsByTransactionHash": [["$tx"]],
    "anvil_getBlobByHash": [[WORD]],
    "anvil_dealERC20": [[FIRST, "$token", "0x5"]],
    "hardhat_dealERC20": [[FIRST, "$token", "0x6"]],
    "anvil_setERC20Balance": [[FIRST, "$token", "0x7"]],
    "anvil_setERC20Allowance": [[FIRST, TO, "$token", "0x5"]],
    "anvil_rollback": [[1]],
    "anvil_reorg": [[1, [[TRANSFER, 0]]]],
    "anvil_getGenesisTime": [[]],
    "anvil_nodeInfo": [[]],
    "hardhat_metadata": [[]],
    "anvil_metadata": [[]],
    "hardhat_reset": [[]],
    "anvil_reset": [[{}]],
}
# Blocks have no uncles.
MAY_BE_NULL = (
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleByBlockHashAndIndex",
    "anvil_getIntervalMining",
    # These give null in anvil, too.
    *(route.name for route in DEV_ROUTES if route.result is NoneType),
)
NEVER_ANSWERED = {"eth_getBlockAccessList", "debug_getRawBlockAccessList", *REASONS}


@pytest.fixture
def evm(tmp_path: Path) -> Iterator[FlaskClient]:
    app = dev_app(tmp_path, evm_api=ALL_API, produce=True)
    with closing(chain_of(app)):
        yield app.test_client()


def asked(client: FlaskClient, method: str, *params: Any) -> Any:
    """Return the whole response of the EVM layer."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/evm", json=body).get_json()


def prepared(client: FlaskClient) -> dict[str, Any]:
    """Make a block with a contract and a call that logs, and pending transactions."""

    def done(method: str, *params: Any) -> Any:
        return asked(client, method, *params)["result"]

    done("evm_setAutomine", False)
    done("evm_setIntervalMining", 0)
    creation = done("eth_sendTransaction", {"from": FIRST, "data": "0x" + CODE.hex()})
    done("evm_mine")
    contract = done("eth_getTransactionReceipt", creation)["contractAddress"]
    done("anvil_setCode", TOKEN_ADDRESS, TOKEN)
    call = {**CALL, "to": contract, "gas": "0x186a0"}
    sent = [done("eth_sendTransaction", tx) for tx in (call, TRANSFER)]
    done("evm_mine")
    receipt = done("eth_getTransactionReceipt", sent[0])
    raws = [
        transaction(nonce, to=TO, gas=21_000, maxFeePerGas=10**10, chainId=DEV_CHAIN_ID)
        for nonce in (0, 1)
    ]
    return {
        "$creation": creation,
        "$contract": contract,
        "$tx": sent[0],
        "$token": TOKEN_ADDRESS,
        "$code_hash": f"0x{keccak(bytes.fromhex(TOKEN[2:])).hex()}",
        "$block": receipt["blockHash"],
        "$height": receipt["blockNumber"],
        "$waiting": done("eth_sendTransaction", TRANSFER),
        "$later": hex(
            int(done("eth_getBlockByNumber", "latest", False)["timestamp"], 16) + 10**6
        ),
        "$raw0": f"0x{raws[0].hex()}",
        "$raw1": f"0x{raws[1].hex()}",
    }


def test_every_method_of_the_evm_layer_is_as_described(evm: FlaskClient) -> None:
    document = strict(asked(evm, "rpc.discover")["result"])
    methods = {method["name"]: method for method in document["methods"]}
    served = {route.name for route in EVM_ROUTES + DEV_ROUTES} | {"rpc.discover"}
    assert methods.keys() == served
    assert EVM_CALLS.keys() == served - NEVER_ANSWERED
    known = prepared(evm)

    for name, examples in EVM_CALLS.items():
        for params in examples:
            given = resolved(params, known)
            reply = asked(evm, name, *given)
            assert "result" in reply, (name, given, reply)
            result = known[f"${name}"] = reply["result"]
            assert result is not None or name in MAY_BE_NULL, name
            assert_described(methods[name], given, result, document)


def test_methods_documented_as_unsupported_are_refused(evm: FlaskClient) -> None:
    for name in NEVER_ANSWERED:
        assert asked(evm, name)["error"]["code"] == -32004, name
