"""Tests of the record of signed heights: a home's validator key never signs a height twice."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.chain import home, validator_keys
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.signer import GuardedKey
from flask_noderpc.chain.validator_keys import LastSigned, read_record, validator_key_document
from flask_noderpc.domain.block import BlockID, PartSetHeader, Vote, VoteType
from flask_noderpc.errors import ChainHalted, ConfigurationError, KeyProtected, StoreError
from flask_noderpc.protocol.comet.keys import commit_vote
from flask_noderpc.protocol.comet.messages import canonical_vote

from ..helpers.until import PATIENCE
from .conftest import Open
from .fixtures import Recorder, key, write_home

STATE = "data/priv_validator_state.json"
# CometBFT 0.38.25 wrote this file.
GOLDEN = Path(__file__).parents[1] / "golden" / "priv_validator_state_0.38.25.json"


def record(folder: Path, name: str = STATE) -> LastSigned:
    found = read_record(folder / name)
    assert found is not None
    return found


def verified(chain: EmbeddedChain) -> None:
    assert verify_chain(chain.reads) == chain.reads.latest_height()


def write(folder: Path, value: LastSigned, name: str = STATE) -> None:
    (folder / name).write_bytes(value.document())


def test_a_record_is_written_before_the_block_is_stored(chain: EmbeddedChain) -> None:
    height = chain.produce()

    commit = chain.reads.commit(height)
    vote = commit_vote(commit, 0)
    signed = record(chain.home)
    assert (signed.height, signed.round, signed.step) == (height, 0, 3)
    assert signed.signature == vote.signature
    assert signed.sign_bytes == canonical_vote(vote, chain.reads.chain_id())
    assert (chain.home / STATE).stat().st_mode & 0o777 == 0o600


def test_a_record_has_the_bytes_that_cometbft_writes() -> None:
    found = read_record(GOLDEN)

    assert found is not None
    assert found.document() == GOLDEN.read_bytes()
    assert LastSigned().document() == b'{\n  "height": "0",\n  "round": 0,\n  "step": 0\n}'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"height":"1","round":0}',
        '{"height":"x","round":0,"step":3}',
        '{"height":"-1","round":0,"step":3}',
        '{"height":" 1_0","round":0,"step":3}',
        '{"height":"١","round":0,"step":3}',
        '{"height":"9223372036854775808","round":0,"step":3}',
        '{"height":"1","round":-1,"step":3}',
        '{"height":"1","round":0,"step":4}',
        '{"height":"1","round":0,"step":3,"signature":"*"}',
        '{"height":"1","round":0,"step":3,"signbytes":"0G"}',
    ],
)
def test_a_damaged_record_stops_the_node(
    open_chain: Open, tmp_path: Path, content: str
) -> None:
    home.create(tmp_path, None, 0)
    (tmp_path / STATE).write_text(content)

    with pytest.raises(ConfigurationError, match=r"priv_validator_state\.json"):
        open_chain().produce()


def test_a_height_that_was_signed_in_another_store_stops_the_node(
    open_chain: Open, tmp_path: Path
) -> None:
    home.create(tmp_path, None, 0)
    write(tmp_path, LastSigned(886, 0, 3))

    with pytest.raises(ConfigurationError, match=r"blocks 1 to 886 are missing.*height 886"):
        open_chain().produce()


def test_a_first_height_that_was_signed_elsewhere_stops_the_node(
    open_chain: Open, tmp_path: Path
) -> None:
    home.create(tmp_path, None, 0)
    write(tmp_path, LastSigned(1, 0, 3))

    with pytest.raises(ConfigurationError, match="signed height 1"):
        open_chain().produce()


@pytest.mark.sqlite  # The test removes the store's file.
def test_a_lost_store_stops_the_node(open_chain: Open, chain: EmbeddedChain) -> None:
    chain.produce()
    chain.produce()
    chain.close()
    for path in chain.home.glob("chain.db*"):
        path.unlink()

    with pytest.raises(ConfigurationError, match="signed height 2"):
        open_chain().produce()


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("round_number", [0, 4])
def test_a_crash_after_a_signature_leads_to_a_later_round(
    open_chain: Open, tmp_path: Path, step: int, round_number: int
) -> None:
    open_chain().close()
    write(tmp_path, LastSigned(1, round_number, step, b"\x01" * 64, b"\x02"))
    chain = open_chain()

    assert chain.produce() == 1
    assert chain.produce() == 2

    assert chain.reads.commit(1).round == round_number + 1
    assert chain.reads.commit(2).round == 0
    assert record(tmp_path).round == 0
    verified(chain)


def test_the_proposer_is_that_of_the_later_round(open_chain: Open, tmp_path: Path) -> None:
    powers = {1: 10, 2: 10, 3: 10}
    write_home(tmp_path / "plain", powers, own=[1, 2, 3])
    write_home(tmp_path, powers, own=[1, 2, 3])
    plain = EmbeddedChain(tmp_path / "plain" / "chain.db", produce=False)
    plain.produce()
    open_chain().close()
    write(tmp_path, LastSigned(1, 0, 3, b"\x01" * 64), "data/priv_validator_state.2.json")

    chain = open_chain()
    chain.produce()

    assert chain.reads.commit(1).round == 1
    proposers = [each.reads.block_meta(1).header.proposer_address for each in (plain, chain)]
    plain.close()
    assert proposers[0] != proposers[1]
    names = [f"data/priv_validator_state{n}.json" for n in ("", ".2", ".3")]
    assert [record(tmp_path, name).round for name in names] == [1, 1, 1]


Crash = Callable[[EmbeddedChain], None]


def crash(chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sign a block, and fail to store it."""

    def fail(*args: object, **options: object) -> None:
        raise StoreError("the disk has gone")

    with monkeypatch.context() as patch:
        patch.setattr(chain.store, "append_block", fail)
        with pytest.raises(StoreError):
            chain.produce()
    chain.close()


def test_the_same_block_gets_the_same_signature_and_its_time(
    open_chain: Open, chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.produce()
    crash(chain, monkeypatch)
    before = record(chain.home)

    again = open_chain()
    again.clock.advance(5)  # type: ignore[attr-defined]
    again.produce()

    assert before.height == 2
    assert record(chain.home) == before
    commit = again.reads.commit(2)
    assert (commit.round, commit.signatures[0].signature) == (0, before.signature)
    verified(again)


def test_another_block_gets_a_later_round(
    open_chain: Open, chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.produce()
    crash(chain, monkeypatch)

    again = open_chain()
    again.mempool.submit(b"key=value")
    again.produce()

    assert again.reads.commit(2).round == 1
    assert record(chain.home).round == 1
    verified(again)


def test_a_signature_of_another_process_stops_this_one(
    open_chain: Open, chain: EmbeddedChain
) -> None:
    chain.produce()
    write(chain.home, LastSigned(7, 0, 3))

    with pytest.raises(ChainHalted, match="has already signed height 7"):
        chain.produce()


def test_nothing_is_signed_without_a_record(chain: EmbeddedChain) -> None:
    chain.produce()
    (chain.home / STATE).unlink()

    with pytest.raises(ChainHalted, match="is missing"):
        chain.produce()
    assert chain.reads.latest_height() == 1


def test_a_key_without_a_record_does_not_sign(open_chain: Open, tmp_path: Path) -> None:
    home.create(tmp_path, None, 0)
    (tmp_path / STATE).unlink()

    with pytest.raises(ConfigurationError, match=r"priv_validator_state.json is missing") as e:
        open_chain().produce()

    # Apply the cure that the error names.
    cure = str(e.value).split("write ")[1].split(" to the file")[0]
    (tmp_path / STATE).write_text(cure)
    open_chain().produce()


def test_a_home_of_an_older_version_goes_on(open_chain: Open, chain: EmbeddedChain) -> None:
    chain.produce()
    chain.close()
    written = (chain.home / STATE).read_bytes()
    (chain.home / STATE).unlink()

    again = open_chain(produce=True, schedule=BlockSchedule(manual=True))

    assert (chain.home / STATE).read_bytes() == written
    assert again.produce() == 2


def test_a_home_of_an_application_without_name_and_store_goes_on(
    open_chain: Open, tmp_path: Path
) -> None:
    chain = open_chain(application=Recorder())
    chain.produce()
    chain.close()
    (tmp_path / STATE).unlink()

    assert open_chain(application=Recorder()).produce() == 2


def test_a_process_that_only_serves_needs_no_record(
    open_chain: Open, chain: EmbeddedChain
) -> None:
    chain.produce()
    chain.close()
    write(chain.home, LastSigned(886, 0, 3))

    serving = open_chain()

    assert serving.reads.latest_height() == 1
    with pytest.raises(ConfigurationError, match="signed height 886"):
        serving.produce()
    with pytest.raises(ConfigurationError, match="signed height 886"):
        open_chain(produce=True)


def test_init_writes_a_record_like_cometbft(tmp_path: Path) -> None:
    home.create(tmp_path, None, 0)

    assert json.loads((tmp_path / STATE).read_text()) == {"height": "0", "round": 0, "step": 0}


@pytest.mark.parametrize("name", ["blockstore.db", "state.db", "cs.wal"])
@pytest.mark.parametrize("folder", ["data", "db", "/absolute"])
def test_the_home_of_a_cometbft_node_is_refused(
    open_chain: Open, tmp_path: Path, name: str, folder: str
) -> None:
    home.create(tmp_path, None, 0)
    data = tmp_path / folder.lstrip("/")
    if folder != "data":
        shown = str(data) if folder.startswith("/") else folder
        (tmp_path / "config" / "config.toml").write_text(f'db_dir = "{shown}"\n')
    (data / name).mkdir(parents=True)

    with pytest.raises(ConfigurationError, match=f"{name}.*--upstream"):
        open_chain().produce()


def test_a_remote_signer_is_refused(open_chain: Open, tmp_path: Path) -> None:
    home.create(tmp_path, None, 0)
    config = tmp_path / "config" / "config.toml"
    config.write_text('priv_validator_laddr = "tcp://0.0.0.0:26658"\n')

    with pytest.raises(ConfigurationError, match="priv_validator_laddr"):
        open_chain().produce()

    config.write_text('priv_validator_laddr = ""\n')
    open_chain().produce()


def test_the_files_of_config_toml_are_used(open_chain: Open, tmp_path: Path) -> None:
    write_home(tmp_path, {1: 10}, own=[1])
    config = tmp_path / "config"
    (config / "priv_validator_key.json").rename(config / "own.json")
    # The record belongs to an older key, which this home no longer uses.
    (config / "priv_validator_key.json").write_bytes(validator_key_document(key(9)))
    (tmp_path / STATE).unlink()
    (config / "config.toml").write_text(
        'priv_validator_key_file = "config/own.json"\n'
        'priv_validator_state_file = "signed/last.json"\n'
    )
    (tmp_path / "signed").mkdir()
    write(tmp_path, LastSigned(), "signed/last.json")
    open_chain().close()
    write(tmp_path, LastSigned(1, 1, 3), "signed/last.json")

    chain = open_chain()
    chain.produce()

    assert record(tmp_path, "signed/last.json").round == 2
    assert not (tmp_path / STATE).exists()
    assert [each.address for each in home.load(tmp_path, 0).validator_keys] == [key(1).address]


@pytest.mark.parametrize(
    "content",
    [
        "= 1",
        "priv_validator_key_file = 7",
        "db_dir = ['data']",
        "\udcff",
        f"db_dir = '{'x' * 300}'",
    ],
)
def test_an_unusable_config_toml_stops_the_node(
    open_chain: Open, tmp_path: Path, content: str
) -> None:
    home.create(tmp_path, None, 0)
    path = tmp_path / "config" / "config.toml"
    path.write_bytes(content.encode(errors="surrogateescape"))

    with pytest.raises(ConfigurationError, match=r"config\.toml"):
        open_chain().produce()


def test_a_chain_with_an_ordinary_key_does_not_go_back(open_chain: Open) -> None:
    chain = open_chain()
    chain.produce()

    with pytest.raises(KeyProtected, match="a development key is needed"):
        chain.block_scheduler().producer.rewind(0)
    assert chain.reads.latest_height() == 1


@pytest.mark.sqlite  # The test copies the store's file.
def test_a_copy_with_its_own_store_and_record_goes_on(
    chain: EmbeddedChain, tmp_path: Path
) -> None:
    chain.produce()
    chain.close()
    shutil.copytree(tmp_path, tmp_path / "moved")

    moved = EmbeddedChain(tmp_path / "moved" / "chain.db", produce=False)
    try:
        assert moved.produce() == 2
    finally:
        moved.close()


def test_a_link_to_a_record_stays_a_link(open_chain: Open, tmp_path: Path) -> None:
    home.create(tmp_path, None, 0)
    kept = tmp_path / "kept.json"
    (tmp_path / STATE).rename(kept)
    (tmp_path / STATE).symlink_to(kept)

    open_chain().produce()

    assert (tmp_path / STATE).is_symlink()
    assert record(tmp_path, "kept.json").height == 1


@pytest.mark.parametrize("target", ["unmounted/kept.json", STATE])
def test_a_link_without_its_record_stops_the_node(
    open_chain: Open, chain: EmbeddedChain, target: str
) -> None:
    chain.produce()
    chain.close()
    (chain.home / STATE).unlink()
    (chain.home / STATE).symlink_to(chain.home / target)

    with pytest.raises(ConfigurationError, match=r"priv_validator_state\.json|kept\.json"):
        open_chain().produce()
    assert not (chain.home / "unmounted").exists()


def test_a_round_that_is_too_high_is_refused(open_chain: Open, tmp_path: Path) -> None:
    open_chain().close()
    write(tmp_path, LastSigned(1, (1 << 31) - 1, 3))

    with pytest.raises(ChainHalted, match="got 2147483647"):
        open_chain().produce()


def test_threads_and_processes_sign_one_block_for_a_round(
    chain: EmbeddedChain, tmp_path: Path
) -> None:
    """The two signers share a home, and do not know each other's blocks."""
    chain.produce()
    (file,) = home.load(chain.home, 0).keys
    keys = [GuardedKey(file), GuardedKey(file)]
    votes = [
        Vote(
            VoteType.PRECOMMIT, 2, 0, BlockID(mark * 32, PartSetHeader(1, mark * 32)), 1, b"", 0
        )
        for mark in (b"\1", b"\2")
    ]
    signed: list[bytes] = []
    refused: list[str] = []

    def sign(number: int) -> None:
        try:
            signed.append(keys[number].sign_vote(votes[number], "chain").signature)
        except ChainHalted as error:
            refused.append(str(error))

    threads = [threading.Thread(target=sign, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert (len(signed), len(refused)) == (1, 1)
    assert record(chain.home).signature == signed[0]


def test_a_signature_of_another_process_is_waited_for(
    chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.produce()
    monkeypatch.setattr(validator_keys, "_PATIENCE_S", 0.01)
    handle = os.open(chain.home / "data", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)

    with pytest.raises(ChainHalted, match="another process holds the lock"):
        chain.produce()

    monkeypatch.undo()
    threading.Timer(0.05, os.close, (handle,)).start()
    assert chain.produce() == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_record_that_can_not_be_written_stops_the_chain(chain: EmbeddedChain) -> None:
    chain.produce()
    data = chain.home / "data"
    data.chmod(0o500)
    try:
        with pytest.raises(ChainHalted, match="nothing is signed"):
            chain.produce()
    finally:
        data.chmod(0o700)
    assert chain.produce() == 2


def test_a_record_in_place_of_a_folder_stops_the_chain(chain: EmbeddedChain) -> None:
    chain.produce()
    (chain.home / f"{STATE}.new").mkdir()

    with pytest.raises(ChainHalted, match=r"nothing is signed.*priv_validator_state_file"):
        chain.produce()

    (chain.home / f"{STATE}.new").rmdir()
    assert chain.produce() == 2


def test_the_reason_that_clients_see_has_no_path(chain: EmbeddedChain) -> None:
    chain.produce()
    (chain.home / STATE).write_text("{")

    with pytest.raises(
        ChainHalted, match=r"nothing is signed: priv_validator_state\.json"
    ) as e:
        chain.produce()

    assert str(chain.home) not in str(e.value)


@pytest.mark.parametrize("height", [1, 886])
def test_a_process_that_only_serves_begins_no_chain_beside_a_record(
    open_chain: Open, tmp_path: Path, height: int
) -> None:
    home.create(tmp_path, None, 0)
    write(tmp_path, LastSigned(height, 0, 3))

    # A worker that only serves may start before the process that produces.
    for produces in (False, True):
        with pytest.raises(ConfigurationError, match=f"signed height {height}"):
            open_chain(produce=produces).start()


def test_a_copy_of_a_key_file_does_not_hide_the_record(
    open_chain: Open, chain: EmbeddedChain
) -> None:
    chain.produce()
    chain.close()
    file = chain.home / "config" / "priv_validator_key.json"
    shutil.copy(file, file.with_name("priv_validator_key-backup.json"))

    again = open_chain()
    again.produce()
    assert record(chain.home).height == 2
    again.close()

    write(chain.home, LastSigned(886, 0, 3))
    with pytest.raises(ConfigurationError, match="signed height 886"):
        open_chain().produce()


# Python 3.12 warns about threads at a fork.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_a_key_signs_keeps_no_lock(tmp_path: Path) -> None:
    waits, released = os.pipe()
    with validator_keys.locked(tmp_path):
        child = os.fork()
        if child == 0:
            os.close(released)
            os.read(waits, 1)
            os._exit(0)
    try:
        with validator_keys.locked(tmp_path):
            pass
    finally:
        os.close(released)
        os.close(waits)
        os.waitpid(child, 0)
