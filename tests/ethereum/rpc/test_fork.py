"""Tests of a chain that is forked from another one: values of the other chain are read when
they are first needed, proven, and kept for later runs without a node."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flask_noderpc.cli import main
from flask_noderpc.errors import BackendError, ConfigurationError, UpstreamError
from flask_noderpc.ethereum.testing import EvmNode, run_evm_node
from tests.helpers.until import until

from .between import Between, asked, between, posted

A, B = (
    "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
)
EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
RICH, CONTRACT, NEW = ("0x" + byte * 20 for byte in ("a1", "c0", "ee"))
# Returns the slot that the input names, or with a second word sets it.
CODE = "0x366020106010575f35545f5260205ff35b6020355f355500"
# Returns the hash of the block that the input names.
HASH_CODE = "0x5f35405f5260205ff3"
# Destroys itself, and sends its funds to the address in the input.
BURNS = "0x5f35ff"


def word(number: int) -> str:
    return f"0x{number:064x}"


class Chain:
    """Calls to a running node."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, *params: Any) -> Any:
        return asked(self.url, method, *params)

    def error(self, method: str, *params: Any) -> str:
        response = posted(self.url, method, *params)
        assert "error" in response, response
        text: str = response["error"]["message"]
        return text

    def slot(self, slot: int, block: str = "latest") -> int:
        found = self("eth_call", {"to": CONTRACT, "data": word(slot)}, block)
        assert int(self("eth_getStorageAt", CONTRACT, hex(slot), block), 16) == int(found, 16)
        return int(found, 16)

    def send(self, **fields: Any) -> Any:
        sent = self("eth_sendTransaction", {"from": A, "gas": "0x30000", **fields})
        until(lambda: self("eth_getTransactionReceipt", sent) is not None, "a receipt")
        return self("eth_getTransactionReceipt", sent)

    def set_slot(self, slot: int, value: int) -> Any:
        receipt = self.send(to=CONTRACT, data=word(slot) + word(value)[2:])
        assert receipt["status"] == "0x1"
        return receipt


@pytest.fixture(scope="module")
def node() -> Iterator[EvmNode]:
    """The other chain: it has a contract with slots 1, 2 and 3, and eight blocks."""
    with run_evm_node() as made:
        chain = Chain(made.url)
        chain("anvil_setBalance", RICH, "0x1234")
        chain("anvil_setNonce", RICH, "0x7")
        chain("anvil_setCode", CONTRACT, CODE)
        for slot in (1, 2, 3):
            chain.set_slot(slot, 100 + slot)
        chain.send(to=B, value="0x5")
        yield made


@pytest.fixture
def other(node: EvmNode) -> Iterator[Chain]:
    with node.snapshot():
        yield Chain(node.url)


@contextmanager
def forked(proxy: str, cache: Path, **more: Any) -> Iterator[Chain]:
    with run_evm_node(fork_url=(proxy,), fork_cache=str(cache), **more) as made:
        yield Chain(made.url)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "fork.jsonl"


def fork_of(other: Chain, cache: Path, use: Callable[[Chain, Between], object]) -> None:
    """Run a fork of the chain, and pass it on with the proxy to the other one."""
    with between(other.url) as (proxy, url), forked(url, cache) as chain:
        use(chain, proxy)


def test_the_state_of_the_other_chain_is_read_once(other: Chain, cache: Path) -> None:
    height = int(other("eth_blockNumber"), 16)

    def use(chain: Chain, proxy: Between) -> None:
        assert int(chain("eth_blockNumber"), 16) == height
        for _ in range(2):
            assert chain("eth_getBalance", RICH, "latest") == "0x1234"
            assert chain("eth_getTransactionCount", RICH, "latest") == "0x7"
            assert chain("eth_getCode", CONTRACT, "latest") == CODE
            assert chain("eth_getCode", NEW, "latest") == "0x"
            assert [chain.slot(each) for each in range(5)] == [0, 101, 102, 103, 0]
        # Later changes of the other chain are not seen.
        other.set_slot(1, 9)
        assert chain.slot(1) == 101
        chain.set_slot(2, 8)
        assert [chain.slot(each) for each in range(4)] == [0, 101, 8, 103]
        reads = {call: n for call, n in proxy.calls.items() if "eth_getBlockBy" not in call}
        assert any("eth_getProof" in call and CONTRACT in call for call in reads)
        assert {call: n for call, n in reads.items() if n > 1} == {}

    fork_of(other, cache, use)


def test_changes_since_the_fork_hide_the_values_of_the_other_chain(
    other: Chain, cache: Path
) -> None:
    def use(chain: Chain, proxy: Between) -> None:
        before = chain("eth_blockNumber")
        for slot in (1, 3):
            chain.set_slot(slot, 0)
        chain.set_slot(2, 77)
        chain("anvil_setBalance", RICH, "0x0")
        chain("anvil_setNonce", RICH, "0x0")
        # An empty account is deleted when it is touched (EIP-161).
        chain.send(to=RICH)
        assert [chain.slot(each) for each in range(5)] == [0, 0, 77, 0, 0]
        assert chain("eth_getBalance", RICH, "latest") == "0x0"
        assert chain("eth_getTransactionCount", RICH, "latest") == "0x0"
        # The block of the fork keeps its state.
        assert [chain.slot(each, before) for each in range(4)] == [0, 101, 102, 103]
        assert chain("eth_getBalance", RICH, before) == "0x1234"
        chain("anvil_reset")
        assert chain("eth_blockNumber") == before
        assert [chain.slot(each) for each in range(4)] == [0, 101, 102, 103]
        assert chain("eth_getBalance", RICH, "latest") == "0x1234"

    fork_of(other, cache, use)


def test_overrides_of_a_call_replace_the_storage(other: Chain, cache: Path) -> None:
    def use(chain: Chain, proxy: Between) -> None:
        call = {"to": CONTRACT, "data": word(1)}
        for override, value in (({"state": {}}, 0), ({"stateDiff": {word(2): word(5)}}, 101)):
            found = chain("eth_call", call, "latest", {CONTRACT: override})
            assert int(found, 16) == value

    fork_of(other, cache, use)


def test_tracers_read_the_other_chain(other: Chain, cache: Path) -> None:
    def use(chain: Chain, proxy: Between) -> None:
        def traced(result: str, **options: str) -> tuple[Any, ...]:
            options["tracer"] = f"{{fault() {{}}, result(ctx, db) {{ {result} }}}}"
            return "debug_traceCall", {"to": CONTRACT, "data": word(2)}, "latest", options

        reads = "[toHex(db.getState(ctx.to, toWord('0x01'))), db.exists(toAddress(address))]"
        asked_for = f"const address = '{RICH}'; return {reads}"
        assert chain(*traced(asked_for)) == [word(101), True]
        endless = "for (let i = 1; ; i++) db.getNonce(toAddress(i.toString(16)))"
        assert chain.error(*traced(endless, timeout="1s")).startswith("execution timeout")
        assert chain(*traced(asked_for)) == [word(101), True]

    fork_of(other, cache, use)


def test_a_second_run_needs_no_node(other: Chain, cache: Path) -> None:
    def run(chain: Chain) -> list[Any]:
        chain.set_slot(1, 5)
        chain.set_slot(3, 0)
        values = [chain.slot(each) for each in range(4)]
        return [values, chain("eth_getBalance", RICH, "latest")]

    block = other("eth_getBlockByNumber", "latest", False)
    first: list[Any] = []
    fork_of(other, cache, lambda chain, proxy: first.extend(run(chain)))
    with forked("http://127.0.0.1:9", cache) as chain:
        assert chain("eth_getBlockByNumber", "latest", False) == block
        assert run(chain) == first
        text = chain.error("eth_getBalance", NEW, "latest")
        assert NEW in text
        assert "can't be read" in text
        assert str(cache) in text
        # The failed read harms nothing.
        assert chain.slot(2) == 102
        # Blocks read nothing else, such as slots of the history contract (EIP-2935).
        chain("anvil_mine", "0x5")
        chain.send(to=B, value="0x1")
        chain("anvil_setStorageAt", CONTRACT, "0x77", word(5))
        assert chain.slot(0x77) == 5
    with run_evm_node(fork_cache=str(cache)) as made:
        assert Chain(made.url).slot(2) == 102
        assert "NODERPC_FORK_URL" in Chain(made.url).error("eth_getBalance", NEW, "latest")


def change_at(*path: str | int) -> Callable[[Any], Any]:
    """Return a function that changes the last hex digit of one value in a result."""

    def change(result: Any) -> Any:
        whole = {"": json.loads(json.dumps(result))}
        at: Any = whole
        *ways, last = ("", *path)
        for each in ways:
            at = at[each]
        text = at[last]
        at[last] = text[:-1] + ("1" if text[-1] != "1" else "2")
        return whole[""]

    return change


_CHANGED = {
    "balance": ("eth_getProof", change_at("balance")),
    "nonce": ("eth_getProof", change_at("nonce")),
    "code hash": ("eth_getProof", change_at("codeHash")),
    "storage root": ("eth_getProof", change_at("storageHash")),
    "root node": ("eth_getProof", change_at("accountProof", 0)),
    "last node": ("eth_getProof", change_at("accountProof", -1)),
    "code": ("eth_getCode", change_at()),
}


@pytest.mark.parametrize("name", _CHANGED)
def test_a_changed_value_of_an_account_is_refused(name: str, other: Chain, cache: Path) -> None:
    method, change = _CHANGED[name]

    def use(chain: Chain, proxy: Between) -> None:
        proxy.change = lambda called, result: change(result) if called == method else result
        text = chain.error("eth_getBalance", CONTRACT, "latest")
        assert "NODERPC_FORK_URL" in text
        assert "wrong values" in text
        # Nothing of it was kept.
        proxy.change = lambda called, result: result
        assert chain("eth_getBalance", CONTRACT, "latest") == "0x0"
        assert chain.slot(1) == 101

    fork_of(other, cache, use)


@pytest.mark.parametrize(
    "path", [("storageProof", 0, "value"), ("storageProof", 0, "proof", 0)]
)
@pytest.mark.parametrize("slot", [2, 9])
def test_a_changed_slot_is_refused(
    path: tuple[str | int, ...], slot: int, other: Chain, cache: Path
) -> None:
    change = change_at(*path)

    def use(chain: Chain, proxy: Between) -> None:
        chain("eth_getCode", CONTRACT, "latest")
        proxy.change = lambda called, result: (
            change(result) if called == "eth_getProof" and result["storageProof"] else result
        )
        assert "wrong values" in chain.error("eth_getStorageAt", CONTRACT, hex(slot), "latest")
        assert "wrong values" in chain.error("eth_call", {"to": CONTRACT, "data": word(slot)})
        proxy.change = lambda called, result: result
        assert chain.slot(slot) == (102 if slot == 2 else 0)

    fork_of(other, cache, use)


def test_a_value_that_is_hidden_by_the_node_is_refused(other: Chain, cache: Path) -> None:
    empty = other("eth_getProof", NEW, [], "latest")

    def use(chain: Chain, proxy: Between) -> None:
        proxy.change = lambda called, result: empty if called == "eth_getProof" else result
        assert "wrong values" in chain.error("eth_getBalance", RICH, "latest")

    fork_of(other, cache, use)


def test_a_wrong_proof_is_refused_from_the_start(other: Chain, cache: Path) -> None:
    changes = [change for method, change in _CHANGED.values() if method == "eth_getProof"]
    with between(other.url) as (proxy, url):
        for change in (*changes, lambda found: {**found, "accountProof": []}):
            changed = {"eth_getProof": change}
            proxy.change = partial(_result_of, changed)
            with pytest.raises(BackendError, match="wrong values"), forked(url, cache):
                pass
            assert not cache.exists()


def _result_of(changed: dict[str, Callable[[Any], Any]], method: str, result: Any) -> Any:
    return changed[method](result) if method in changed else result


@pytest.mark.parametrize("root", [None, word(0), EMPTY_ROOT])
def test_a_node_without_proofs_is_used_and_marked(
    root: str | None, other: Chain, cache: Path
) -> None:
    def with_root(method: str, result: Any) -> Any:
        """Return blocks with a state root that is not the root of the node's proofs."""
        return {**result, "stateRoot": root} if "eth_getBlockBy" in method else result

    # As after a delegation of code (EIP-7702).
    other("anvil_setStorageAt", RICH, "0x1", word(55))
    with between(other.url) as (proxy, url):
        if root is None:
            proxy.refused = ("eth_getProof",)
        else:
            proxy.change = with_root
        with forked(url, cache) as chain:
            assert chain("anvil_nodeInfo")["forkConfig"]["isProven"] is False
            assert chain("hardhat_metadata")["forkedNetwork"]["isProven"] is False
            assert chain("eth_getBalance", RICH, "latest") == "0x1234"
            assert chain("eth_getStorageAt", RICH, "0x1", "latest") == word(55)
            chain.set_slot(1, 0)
            chain.set_slot(2, 6)
            assert [chain.slot(each) for each in range(5)] == [0, 0, 6, 103, 0]
            reads = {c: n for c, n in proxy.calls.items() if "eth_getBlockBy" not in c}
            assert {call: n for call, n in reads.items() if n > 1} == {}
    with forked("http://127.0.0.1:9", cache) as chain:
        assert [chain.slot(each) for each in range(5)] == [0, 101, 102, 103, 0]
        assert chain("anvil_nodeInfo")["forkConfig"]["isProven"] is False


def test_a_block_without_a_base_fee_can_be_forked(other: Chain, cache: Path) -> None:
    def before_london(method: str, result: Any) -> Any:
        if "eth_getBlockBy" in method:
            del result["baseFeePerGas"]
        return result

    with between(other.url) as (proxy, url):
        proxy.change = before_london
        with forked(url, cache) as chain:
            assert int(chain("eth_gasPrice"), 16) > 0
            receipt = chain.send(to=B, value="0x1")
            assert receipt["status"] == "0x1"
            assert int(receipt["effectiveGasPrice"], 16) > 0


def test_a_proven_fork_says_so(other: Chain, cache: Path) -> None:
    def use(chain: Chain, proxy: Between) -> None:
        fork = chain("anvil_nodeInfo")["forkConfig"]
        assert fork["isProven"] is True
        assert fork["forkBlockNumber"] == int(other("eth_blockNumber"), 16)
        network = chain("hardhat_metadata")["forkedNetwork"]
        assert (
            network["forkBlockHash"] == other("eth_getBlockByNumber", "latest", False)["hash"]
        )
        for method, *params in (
            ("eth_getProof", RICH, [], "latest"),
            ("anvil_dumpState",),
        ):
            assert "forked chain" in chain.error(method, *params)

    fork_of(other, cache, use)


def test_blocks_before_the_fork_come_from_the_other_chain(other: Chain, cache: Path) -> None:
    block = other("eth_getBlockByNumber", "0x4", True)
    tx = block["transactions"][0]["hash"]

    def use(chain: Chain, proxy: Between) -> None:
        chain.send(to=B, value="0x1")
        own = chain("eth_getBlockByNumber", "latest", True)
        latest = other("eth_getBlockByNumber", "latest", False)
        assert own["parentHash"] == latest["hash"]
        assert int(own["number"], 16) == int(latest["number"], 16) + 1
        assert int(own["timestamp"], 16) > int(latest["timestamp"], 16)
        calls: list[tuple[Any, ...]] = [
            ("eth_getBlockByNumber", "0x4", True),
            ("eth_getBlockByNumber", "earliest", False),
            ("eth_getBlockByNumber", latest["number"], True),
            ("eth_getBlockByHash", block["hash"], False),
            ("eth_getBlockReceipts", "0x4"),
            ("eth_getTransactionByHash", tx),
            ("eth_getTransactionReceipt", tx),
            ("eth_getTransactionByBlockNumberAndIndex", "0x4", "0x0"),
            ("eth_getBalance", A, "0x1"),
            ("eth_getBalance", A, {"blockHash": block["hash"]}),
            ("eth_getStorageAt", CONTRACT, "0x1", "0x4"),
            ("eth_call", {"to": CONTRACT, "data": word(1)}, "0x4"),
            ("eth_getLogs", {"fromBlock": "0x0", "toBlock": "0x5"}),
            ("eth_feeHistory", "0x2", "0x3", [50]),
            ("debug_traceTransaction", tx, {"tracer": "callTracer"}),
        ]
        for method, *params in calls:
            assert chain(method, *params) == other(method, *params), method
        assert chain("eth_getTransactionReceipt", word(5)) is None
        assert chain("eth_getBlockByNumber", "0xffff", False) is None
        assert own["transactions"][0]["from"] == A.lower()
        # Code sees the hashes of the other chain's blocks, too.
        chain("anvil_setCode", NEW, HASH_CODE)
        for number in (4, int(latest["number"], 16)):
            found = chain("eth_call", {"to": NEW, "data": word(number)}, "latest")
            assert found == other("eth_getBlockByNumber", hex(number), False)["hash"]

    fork_of(other, cache, use)


def test_logs_of_both_chains_are_in_one_list(other: Chain, cache: Path) -> None:
    # Emits an event without topics.
    other("anvil_setCode", NEW, "0x60205fa000")
    other.send(to=NEW)

    def use(chain: Chain, proxy: Between) -> None:
        chain.send(to=NEW)
        found = chain("eth_getLogs", {"fromBlock": "0x0", "address": NEW})
        heights = [int(each["blockNumber"], 16) for each in found]
        height = int(other("eth_blockNumber"), 16)
        assert heights == [height, height + 1]
        assert len(chain("eth_getLogs", {"fromBlock": hex(height + 1), "address": NEW})) == 1

    fork_of(other, cache, use)


def test_an_older_block_can_be_forked(other: Chain, cache: Path) -> None:
    with between(other.url) as (_, url), forked(url, cache, fork_block_number=4) as chain:
        assert chain("eth_blockNumber") == "0x4"
        assert [chain.slot(each) for each in range(4)] == [
            int(other("eth_getStorageAt", CONTRACT, hex(each), "0x4"), 16) for each in range(4)
        ]
        header = other("eth_getBlockByNumber", "0x4", False)
        # Time goes on from that block.
        chain("anvil_mine", "0x1")
        mined = chain("eth_getBlockByNumber", "latest", False)
        passed = int(mined["timestamp"], 16) - int(header["timestamp"], 16)
        assert 0 < passed < 10_000


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["slot", "pay", "burn"]), st.integers(0, 4), st.integers(0, 2)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_both_chains_make_the_same_of_the_same_transactions(
    pair: tuple[EvmNode, EvmNode], steps: list[tuple[str, int, int]]
) -> None:
    with pair[0].snapshot(), pair[1].snapshot():
        chains = [Chain(each.url) for each in pair]

        def run(chain: Chain) -> list[Any]:
            gas = []
            for kind, one, value in steps:
                match kind:
                    case "slot":
                        receipt = chain.set_slot(one, value)
                    case "pay":
                        receipt = chain.send(
                            to=(RICH, NEW, B, CONTRACT, A)[one], value=hex(value)
                        )
                    case _:
                        # A contract that creates nothing and destroys itself at once.
                        init = BURNS.replace("5f35", f"73{RICH[2:]}")
                        receipt = chain.send(data=init, value=hex(value), gas="0x50000")
                gas.append((receipt["gasUsed"], receipt["status"]))
            values = [chain.slot(each) for each in range(5)]
            funds = [chain("eth_getBalance", each, "latest") for each in (RICH, NEW, CONTRACT)]
            return [gas, values, funds]

        assert run(chains[0]) == run(chains[1])


@pytest.fixture(scope="module")
def pair(
    node: EvmNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EvmNode, EvmNode]]:
    """A chain, and its fork."""
    cache = tmp_path_factory.mktemp("fork") / "fork.jsonl"
    with run_evm_node(fork_url=(node.url,), fork_cache=str(cache)) as made:
        yield node, made


def test_a_chain_goes_on_with_its_own_fork_only(
    other: Chain, cache: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with between(other.url) as (_, url):
        with forked(url, cache, folder=home) as chain:
            chain.set_slot(1, 55)
            height = chain("eth_blockNumber")
        with forked("http://127.0.0.1:9", cache, folder=home) as chain:
            assert chain.slot(1) == 55
            assert chain("eth_blockNumber") == height
        second = tmp_path / "second.jsonl"
        with forked(url, second, fork_block_number=2):
            pass
        with (
            pytest.raises(ConfigurationError, match="expected the settings with which"),
            forked(url, second, folder=home),
        ):
            pass
        with (
            pytest.raises(ConfigurationError, match="NODERPC_FORK_BLOCK_NUMBER"),
            forked(url, cache, fork_block_number=2),
        ):
            pass
    with pytest.raises(ConfigurationError, match="NODERPC_FORK_URL"), run_evm_node(home):
        pass


def test_a_fork_that_can_t_begin_says_why(other: Chain, cache: Path) -> None:
    with (
        pytest.raises(BackendError, match="can't be reached"),
        forked("http://127.0.0.1:9", cache),
    ):
        pass
    with (
        pytest.raises(ConfigurationError, match="NODERPC_FORK_BLOCK_NUMBER"),
        forked(other.url, cache, fork_block_number=10**9),
    ):
        pass
    with (
        pytest.raises(ConfigurationError, match="NODERPC_FORK_URL"),
        forked(other.url, cache, fork_block_number=1, dev=False),
    ):
        pass
    assert not cache.exists()
    cache.write_text("nothing\n")
    with pytest.raises(ConfigurationError, match="delete the file"), forked(other.url, cache):
        pass


def test_a_file_that_was_cut_off_is_read_up_to_there(other: Chain, cache: Path) -> None:
    fork_of(other, cache, lambda chain, proxy: chain.set_slot(1, 5))
    whole = cache.read_bytes()
    cache.write_bytes(whole[: -random.Random(1).randrange(2, 40)])
    fork_of(other, cache, lambda chain, proxy: chain.set_slot(1, 6))
    with forked("http://127.0.0.1:9", cache) as chain:
        assert chain.slot(1) == 101


def test_two_chains_share_what_they_read(other: Chain, cache: Path) -> None:
    with (
        between(other.url) as (proxy, url),
        forked(url, cache) as one,
        forked(url, cache) as two,
    ):
        for chain in (one, two, one):
            assert [chain.slot(each) for each in range(4)] == [0, 101, 102, 103]
        one.set_slot(1, 7)
        assert (one.slot(1), two.slot(1)) == (7, 101)
        reads = {c: n for c, n in proxy.calls.items() if "eth_getBlockBy" not in c}
        assert {call: n for call, n in reads.items() if n > 1} == {}


@pytest.mark.parametrize("refused", [(), ("eth_getProof",)])
def test_a_forked_chain_can_be_verified_without_the_values_of_the_other(
    refused: tuple[str, ...], other: Chain, cache: Path, tmp_path: Path
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with between(other.url) as (proxy, url):
        proxy.refused = refused
        with forked(url, cache, folder=home) as chain:
            chain.set_slot(1, 0)
            # The code is only in the other chain, and the storage as well.
            chain("anvil_setBalance", CONTRACT, "0x5")
            chain("anvil_setBalance", RICH, "0x0")
            chain.send(to=RICH)
    store = str(home / "noderpc.db")
    for line in (["verify", store], ["backup", store, str(copy)], ["verify", str(copy)]):
        found = CliRunner().invoke(main, line)
        assert found.exit_code == 0, found.output


def test_the_file_is_beside_the_database(other: Chain, tmp_path: Path) -> None:
    with run_evm_node(tmp_path, fork_url=other.url):
        assert (tmp_path / "fork.jsonl").exists()


def test_a_chain_goes_on_after_its_file_was_deleted(
    other: Chain, cache: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with between(other.url) as (_, url):
        with forked(url, cache, folder=home) as chain:
            assert chain.slot(1) == 101
            cache.unlink()
            # The first chain must not read what is kept for another block.
            other.set_slot(2, 9)
            with forked(url, cache) as second:
                assert second.slot(2) == 9
            assert [chain.slot(each) for each in (2, 9)] == [102, 0]
            chain.set_slot(3, 7)
            height = int(chain("eth_blockNumber"), 16)
        cache.unlink()
        with forked(url, cache, folder=home) as chain:
            assert [chain.slot(each) for each in range(4)] == [0, 101, 102, 7]
        cache.unlink()
        with (
            pytest.raises(ConfigurationError, match=f"expected {height - 1}, after which"),
            forked(url, cache, folder=home, fork_block_number=height),
        ):
            pass
    with run_evm_node() as apart:
        Chain(apart.url)("anvil_mine", hex(height))
        with (
            pytest.raises(ConfigurationError, match=rf"after block {height - 1} \(0x"),
            forked(apart.url, cache, folder=home),
        ):
            pass
    assert not cache.exists()


def test_a_chain_that_began_without_a_fork_is_left_as_it_was(
    other: Chain, tmp_path: Path
) -> None:
    with run_evm_node(tmp_path):
        pass
    with (
        pytest.raises(ConfigurationError, match="expected no fork"),
        run_evm_node(tmp_path, fork_url=other.url),
    ):
        pass
    with run_evm_node(tmp_path) as made:
        assert Chain(made.url)("eth_blockNumber") == "0x0"


@pytest.mark.parametrize(
    ("number", "found"),
    list(enumerate([{}, {"hash": None}, {"hash": "0x12"}, {"hash": 5}, [], "0x"])),
)
def test_a_block_s_hash_that_is_nonsense_is_an_error(
    number: int, found: Any, unproven: tuple[Chain, Between]
) -> None:
    chain, proxy = unproven
    call = {"data": f"0x60{number:02x}405f5260205ff3"}
    proxy.change = lambda called, result: found if called == "eth_getBlockByNumber" else result
    assert "NODERPC_FORK_URL" in chain.error("eth_call", call, "latest")
    proxy.change = lambda called, result: result
    assert int(chain("eth_call", call, "latest"), 16) > 0


def test_logs_that_are_nonsense_are_an_error(unproven: tuple[Chain, Between]) -> None:
    chain, proxy = unproven
    chain("anvil_mine", "0x1")
    proxy.change = lambda called, result: {} if called == "eth_getLogs" else result
    assert "NODERPC_FORK_URL" in chain.error("eth_getLogs", {"fromBlock": "0x0"})
    proxy.change = lambda called, result: result
    assert isinstance(chain("eth_getLogs", {"fromBlock": "0x0"}), list)


@pytest.mark.parametrize("result", ["0x" + "f" * 80, "0xgg", "", "12", 5, None, [], "0x" * 999])
@pytest.mark.parametrize("method", ["eth_getBalance", "eth_getStorageAt", "eth_getCode"])
def test_a_node_s_nonsense_is_an_error(
    method: str, result: Any, other: Chain, unproven: tuple[Chain, Between]
) -> None:
    chain, proxy = unproven
    if (method, result) == ("eth_getCode", "0x" + "f" * 80):
        pytest.skip("this is code")
    proxy.change = lambda called, found: result if called == method else found
    address = f"0x{random.Random(f'{method} {result}').randrange(1 << 160):040x}"
    if method == "eth_getStorageAt":
        text = chain.error(method, CONTRACT, f"0x{address[2:]}", "latest")
    else:
        text = chain.error("eth_getBalance", address, "latest")
    assert "NODERPC_FORK_URL" in text
    proxy.change = lambda called, found: found
    assert chain("eth_getBalance", address, "latest") == "0x0"


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("eth_chainId", None),
        ("eth_getBlockByNumber", {"number": "0x3"}),
        ("eth_getBlockByNumber", {"number": "0x7fffffffffffffff"}),
        ("eth_getBlockByNumber", {"timestamp": "0x200000000"}),
        ("eth_getBlockByNumber", {"hash": None}),
    ],
)
def test_nonsense_about_the_block_of_the_fork_is_an_error(
    method: str, result: Any, other: Chain, cache: Path
) -> None:
    with between(other.url) as (proxy, url):
        proxy.refused = ("eth_getProof",)
        proxy.change = lambda called, found: (
            found if called != method else result and {**found, **result}
        )
        with (
            pytest.raises(UpstreamError, match="NODERPC_FORK_URL"),
            forked(url, cache, fork_block_number=4),
        ):
            pass
        assert not cache.exists()


@pytest.fixture(scope="module")
def unproven(
    node: EvmNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Chain, Between]]:
    """A fork of a chain whose node has no proofs."""
    cache = tmp_path_factory.mktemp("unproven") / "fork.jsonl"
    with between(node.url) as (proxy, url):
        proxy.refused = ("eth_getProof",)
        with forked(url, cache) as chain:
            chain("eth_getCode", CONTRACT, "latest")
            yield chain, proxy


def test_damaged_lines_are_read_again(other: Chain, cache: Path) -> None:
    fork_of(other, cache, lambda chain, proxy: chain.set_slot(1, 5))
    first, *lines = cache.read_text().splitlines()
    damaged = [
        "",
        "{}",
        "[1]",
        '{"account":"0x12","rlp":"0xzz"}',
        '{"account":"0x","rlp":"0x"}',
    ]
    cache.write_text("\n".join([first, *damaged, *(line[:-9] for line in lines)]) + "\n")
    fork_of(other, cache, lambda chain, proxy: chain.slot(1))
    with forked("http://127.0.0.1:9", cache) as chain:
        assert chain.slot(1) == 101


def test_a_folder_that_can_t_be_written_is_named(other: Chain, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigurationError, match="NODERPC_FORK_CACHE"),
        forked(other.url, tmp_path / "file" / "fork.jsonl"),
    ):
        pass


def test_a_reset_names_the_fork_with_which_the_chain_began(other: Chain, cache: Path) -> None:
    def use(chain: Chain, proxy: Between) -> None:
        height = int(other("eth_blockNumber"), 16)
        for fork in (
            {"jsonRpcUrl": "http://x", "blockNumber": height},
            {"jsonRpcUrl": "http://x"},
        ):
            chain.set_slot(1, 5)
            assert chain("hardhat_reset", {"forking": fork}) is True
            assert chain.slot(1) == 101
        other_block = {"jsonRpcUrl": "http://x", "blockNumber": height - 1}
        assert "--fork-block-number" in chain.error("hardhat_reset", {"forking": other_block})

    fork_of(other, cache, use)
