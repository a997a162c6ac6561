"""Tests of a node's home: CometBFT's files, created once and never overwritten."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from base64 import b64decode
from pathlib import Path

import pytest

from flask_noderpc.chain import home
from flask_noderpc.chain.home import genesis_path, replace_genesis
from flask_noderpc.errors import ConfigurationError
from tests.helpers.until import PATIENCE

from .fixtures import GENESIS_TIME, key, write_home, write_key

OWN_KEY = "priv_validator_key.json"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "config").iterdir()}


def test_a_new_home_has_the_three_files_in_cometbft_s_formats(tmp_path: Path) -> None:
    made = home.create(tmp_path, "my-chain", GENESIS_TIME)

    own = json.loads((tmp_path / "config" / OWN_KEY).read_text())
    node = json.loads((tmp_path / "config" / "node_key.json").read_text())
    genesis = json.loads((tmp_path / "config" / "genesis.json").read_text())
    assert own["address"] == made.validator_keys[0].address.hex().upper()
    assert own["pub_key"]["type"] == "tendermint/PubKeyEd25519"
    private = b64decode(own["priv_key"]["value"])
    assert own["priv_key"]["type"] == node["priv_key"]["type"] == "tendermint/PrivKeyEd25519"
    assert (len(private), private[32:]) == (64, b64decode(own["pub_key"]["value"]))
    assert genesis["chain_id"] == "my-chain"
    assert genesis["genesis_time"] == "2020-09-13T12:26:40Z"
    assert genesis["initial_height"] == "1"
    assert genesis["consensus_params"]["block"] == {"max_bytes": "22020096", "max_gas": "-1"}
    assert genesis["validators"] == [
        {"address": own["address"], "pub_key": own["pub_key"], "power": "10", "name": ""}
    ]


def test_the_files_are_laid_out_as_cometbft_does(tmp_path: Path) -> None:
    home.create(tmp_path, None, GENESIS_TIME)

    assert (tmp_path / "config" / OWN_KEY).read_text().startswith('{\n  "address": "')
    assert "\n" not in (tmp_path / "config" / "node_key.json").read_text()


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    home.create(tmp_path, None, GENESIS_TIME)

    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "config").iterdir()
    }

    assert modes == {OWN_KEY: 0o600, "node_key.json": 0o600, "genesis.json": 0o644}


def test_a_generated_chain_id_has_cometbfts_form(tmp_path: Path) -> None:
    names = {
        home.create(tmp_path / str(number), None, 1).genesis.chain_id for number in range(3)
    }

    assert len(names) == 3
    assert all(re.fullmatch("test-chain-[A-Za-z0-9]{6}", name) for name in names)


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    home.create(tmp_path, "first", GENESIS_TIME)
    before = contents(tmp_path)

    again = home.create(tmp_path, None, GENESIS_TIME + 1)

    assert contents(tmp_path) == before
    assert again.genesis.chain_id == "first"


def test_missing_files_are_added_to_a_home(tmp_path: Path) -> None:
    write_key(tmp_path, key(5))

    made = home.create(tmp_path, None, GENESIS_TIME)

    assert made.validator_keys[0].address == key(5).address
    assert made.genesis.validators[0].address == key(5).address


def test_priv_validator_key_comes_first_among_several(tmp_path: Path) -> None:
    write_home(tmp_path, {1: 1, 2: 1, 3: 1}, [3, 1, 2])

    loaded = home.create(tmp_path, None, GENESIS_TIME)

    assert [k.address for k in loaded.validator_keys] == [key(n).address for n in (3, 1, 2)]


def test_threads_that_create_one_home_at_once_get_the_same_files(tmp_path: Path) -> None:
    together = threading.Barrier(8)
    made: list[home.Home] = []

    def create() -> None:
        together.wait(PATIENCE)
        made.append(home.create(tmp_path, None, GENESIS_TIME))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(made) == 8
    assert len({one.genesis.chain_id for one in made}) == 1
    assert len({one.node_key.seed for one in made}) == 1
    assert len({one.validator_keys[0].seed for one in made}) == 1


def test_processes_that_create_one_home_at_once_get_the_same_files(tmp_path: Path) -> None:
    program = """
import sys, pathlib
from flask_noderpc.chain import home
sys.stdin.readline()
made = home.create(pathlib.Path(sys.argv[1]), None, 1)
print(made.genesis.chain_id, made.node_key.address.hex(), made.validator_keys[0].address.hex())
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "home")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    answers = {process.communicate(timeout=PATIENCE)[0] for process in processes}

    assert len(answers) == 1
    assert len(answers.pop().split()) == 3
    assert sorted(contents(tmp_path / "home")) == ["genesis.json", "node_key.json", OWN_KEY]


@pytest.mark.parametrize("name", ["genesis.json", "node_key.json", OWN_KEY])
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"priv_key": 1, "chain_id": 1}'])
def test_a_file_that_can_t_be_read_is_named(tmp_path: Path, name: str, content: str) -> None:
    home.create(tmp_path, None, GENESIS_TIME)
    (tmp_path / "config" / name).write_text(content)

    with pytest.raises(ConfigurationError, match=re.escape(f"config/{name}: ")):
        home.create(tmp_path, None, GENESIS_TIME)


@pytest.mark.features
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("PrivKeyEd25519", "PrivKeySecp256k1", "expected a secret of 32 bytes, got 64"),
        (
            "PrivKeyEd25519",
            "PrivKeySr25519",
            "expected a key of type tendermint/PrivKeyEd25519",
        ),
        ("BQUFBQUF", "AAAAAAAA", "expected the public key of the seed"),
    ],
)
def test_another_kind_of_key_is_refused(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    write_key(tmp_path, key(5))
    file = tmp_path / "config" / OWN_KEY
    start, private = file.read_text().split('"priv_key"')
    file.write_text(start + '"priv_key"' + private.replace(old, new, 1))

    with pytest.raises(ConfigurationError, match=f"{OWN_KEY}.*{complaint}"):
        home.create(tmp_path, None, GENESIS_TIME)


def test_a_second_key_that_can_t_be_read_is_named(tmp_path: Path) -> None:
    home.create(tmp_path, None, GENESIS_TIME)
    (tmp_path / "config" / "priv_validator_key.more.json").write_text("{}")

    with pytest.raises(ConfigurationError, match=r"priv_validator_key\.more\.json"):
        home.create(tmp_path, None, GENESIS_TIME)


def test_a_file_that_is_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "config" / "node_key.json").mkdir(parents=True)

    with pytest.raises(ConfigurationError, match=r"node_key\.json: Is a directory"):
        home.create(tmp_path, None, GENESIS_TIME)


def test_a_home_that_can_t_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="NODERPC_HOME"):
        home.create(tmp_path / "file", None, GENESIS_TIME)


def test_a_home_that_is_not_there_is_named_when_it_is_only_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"genesis\.json: No such file.*noderpc init"):
        home.load(tmp_path, GENESIS_TIME)


def test_a_missing_validator_key_is_an_error_and_not_recreated(tmp_path: Path) -> None:
    home.create(tmp_path, "first", GENESIS_TIME)
    (tmp_path / "config" / "priv_validator_key.json").unlink()

    with pytest.raises(ConfigurationError, match=r"priv_validator_key.json is missing"):
        home.create(tmp_path, None, GENESIS_TIME)

    assert not (tmp_path / "config" / "priv_validator_key.json").exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_two_keys_with_one_record_are_refused(tmp_path: Path, is_link: bool) -> None:
    write_home(tmp_path, {1: 10, 2: 10}, own=[1])
    config, data = tmp_path / "config", tmp_path / "data"
    write_key(tmp_path, key(2), "priv_validator_key_2.json")
    if is_link:
        (data / "priv_validator_state_2.json").unlink()
        (data / "priv_validator_state_2.json").symlink_to("priv_validator_state.json")
    else:
        (config / "config.toml").write_text(
            'priv_validator_state_file = "data/priv_validator_state_2.json"\n'
        )

    with pytest.raises(
        ConfigurationError, match=r"validator_state\S*: expected a separate record"
    ):
        home.load(tmp_path, GENESIS_TIME)


def test_a_full_disk_leaves_the_document_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = genesis_path(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_genesis(tmp_path, b"new")
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"
