"""Start chains with the genesis documents that the Cosmos SDK's own program writes.

The documents are not changed: their genesis transactions are executed, and members of modules
that the application does not have, such as gov, are ignored.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from flask_noderpc.chain.from_settings import chain_from_settings
from flask_noderpc.chain.validator_keys import LastSigned
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.settings import read_settings
from flask_noderpc.testing.node import app_for

from ...clients.record_genesis import RECORDING, VERSIONS
from ...helpers.until import until
from .playing import Json

POWER = 1_000_000
DOCUMENTS = ("single", "three")


@cache
def recorded() -> Json:
    return json.loads(gzip.decompress(RECORDING.read_bytes()))


def write_home(home: Path, document: str, keys: Sequence[str] = ()) -> None:
    config, data = home / "config", home / "data"
    config.mkdir(parents=True)
    data.mkdir()
    (config / "genesis.json").write_text(document)
    for number, key in enumerate(keys):
        name = f"priv_validator_key.{number}.json" if number else "priv_validator_key.json"
        (config / name).write_text(key)
        record = data / name.replace("_key", "_state")
        record.write_bytes(LastSigned().document())


@contextmanager
def started(home: Path, *, dev: bool) -> Iterator[FlaskClient]:
    """Start a chain in a home, and yield a client after its first blocks."""
    mount = {"application": "bank", "dialect": "comet-0.38", "rest": True, "dev": dev}
    settings = read_settings({}, {**mount, "home": str(home), "block_interval": 0.001})
    chain = chain_from_settings(settings, home)
    try:
        chain.start()
        until(lambda: chain.reads.latest_height() == 1, "the first block")
        for _ in range(4):
            chain.produce()
        yield app_for(chain, **mount).test_client()
    finally:
        chain.close()


def rest(client: FlaskClient, path: str) -> Json:
    reply = client.get(f"/cosmos/{path}")
    assert reply.status_code == 200, reply.text
    return reply.get_json()


class Document:
    """A recorded document, and what it says."""

    def __init__(self, version: str, name: str) -> None:
        given = recorded()[version][name]
        self.text: str = given["document"]
        self.keys: list[str] = given["keys"]
        self.state: Json = json.loads(self.text)["app_state"]
        self.gentxs: list[Json] = [
            tx["body"]["messages"][0] for tx in self.state["genutil"]["gen_txs"]
        ]

    @property
    def tokens(self) -> dict[str, int]:
        return {each["validator_address"]: amount(each["value"]) for each in self.gentxs}

    @property
    def powers(self) -> dict[str, int]:
        """Voting powers by the base64 text of the key."""
        return {each["pubkey"]["key"]: amount(each["value"]) // POWER for each in self.gentxs}

    @property
    def supply(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for balance in self.state["bank"]["balances"]:
            for coin in balance["coins"]:
                found[coin["denom"]] = found.get(coin["denom"], 0) + amount(coin)
        return found


def amount(coin: Json) -> int:
    return int(coin["amount"])


def consensus(client: FlaskClient) -> dict[str, int]:
    """Return the voting powers of the validators that take part in consensus."""
    found = client.get("/validators?height=1").get_json()["result"]["validators"]
    return {each["pub_key"]["value"]: int(each["voting_power"]) for each in found}


def check_state(client: FlaskClient, document: Document) -> None:
    """Check validators, pools, supply and rewards after some blocks."""
    bonded = rest(client, "staking/v1beta1/validators?status=BOND_STATUS_BONDED")["validators"]
    assert {each["operator_address"]: int(each["tokens"]) for each in bonded} == document.tokens
    by_operator = {each["operator_address"]: each for each in bonded}
    for gentx in document.gentxs:
        validator = by_operator[gentx["validator_address"]]
        assert validator["commission"]["commission_rates"] == gentx["commission"]
        assert validator["description"] == gentx["description"]
        assert not validator["jailed"]
    pool = rest(client, "staking/v1beta1/pool")["pool"]
    staked = sum(document.tokens.values())
    assert pool == {"not_bonded_tokens": "0", "bonded_tokens": str(staked)}

    supply = {
        each["denom"]: amount(each) for each in rest(client, "bank/v1beta1/supply")["supply"]
    }
    assert supply["stake"] > document.supply["stake"]
    assert supply == {**document.supply, "stake": supply["stake"]}
    owners = rest(client, "bank/v1beta1/denom_owners/stake")["denom_owners"]
    assert sum(amount(each["balance"]) for each in owners) == supply["stake"]
    for operator in document.tokens:
        path = f"distribution/v1beta1/validators/{operator}/outstanding_rewards"
        (reward,) = rest(client, path)["rewards"]["rewards"]
        assert float(reward["amount"]) > 0


@pytest.fixture(params=DOCUMENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_development_chain_starts_without_the_keys(
    version: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    document = Document(version, name)
    write_home(tmp_path, document.text)
    with started(tmp_path, dev=True) as client:
        check_state(client, document)
        assert not consensus(client).keys() & document.powers.keys()
    count = len(document.tokens)
    assert f"{count} of {count} bonded validators take no part in consensus" in caplog.text


def test_the_validators_of_the_document_sign(
    version: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    document = Document(version, name)
    write_home(tmp_path, document.text, document.keys)
    with started(tmp_path, dev=False) as client:
        check_state(client, document)
        assert consensus(client) == document.powers
        commit = client.get("/commit?height=4").get_json()["result"]["signed_header"]["commit"]
        signers = {each["validator_address"] for each in commit["signatures"]}
        assert signers == {json.loads(key)["address"] for key in document.keys}
        infos = rest(client, "slashing/v1beta1/signing_infos")["info"]
        assert [each["missed_blocks_counter"] for each in infos] == ["0"] * len(signers)
    assert "take no part" not in caplog.text


def test_too_few_keys_are_refused(version: str, tmp_path: Path) -> None:
    document = Document(version, "three")
    write_home(tmp_path, document.text, document.keys[:1])
    text = r"expected keys with more than two thirds of the voting power, got 70 of 130: put"
    with pytest.raises(ConfigurationError, match=text), started(tmp_path, dev=False):
        pass


def changed(document: Document, module: str, **members: Json) -> str:
    whole = json.loads(document.text)
    whole["app_state"][module] |= members
    return json.dumps(whole)


@pytest.mark.parametrize(("above", "minted"), [(1, 1), (-5, 0)])
def test_the_maximum_supply_is_not_exceeded(above: int, minted: int, tmp_path: Path) -> None:
    document = Document("0.55.0", "single")
    supply = document.supply["stake"]
    params = {**document.state["mint"]["params"], "max_supply": str(supply + above)}
    write_home(tmp_path, changed(document, "mint", params=params))
    with started(tmp_path, dev=True) as client:
        (found,) = rest(client, "bank/v1beta1/supply")["supply"]
        assert amount(found) == supply + minted


def test_pending_rotations_of_keys_are_refused(tmp_path: Path) -> None:
    rotation = {"validator_address": "", "new_pubkey": None, "apply_height": "5"}
    document = Document("0.55.0", "single")
    text = changed(document, "staking", pending_consensus_key_rotations=[rotation])
    write_home(tmp_path, text)
    refusal = r"staking\.pending_consensus_key_rotations\[0\]: rotations of keys are not"
    with pytest.raises(ConfigurationError, match=refusal), started(tmp_path, dev=True):
        pass
