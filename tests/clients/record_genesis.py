"""Record genesis documents that the commands of the Cosmos SDK's own program write.

``python -m tests.clients.record_genesis`` builds the commands in tests/clients/sdk/genesis for
each version, which takes minutes, and runs them as an operator does. The recording is gzipped
JSON, ``{version: {name: {document, keys}}}``: ``document`` is the text of genesis.json, and
``keys`` are the texts of its validators' priv_validator_key.json. The names of the documents:

``single``
    One validator by a genesis transaction, with the default parameters.
``three``
    Three validators, whose homes are made apart; their genesis transactions have different
    amounts and commissions. Another account has two denominations.

Keys come from well-known mnemonics. The genesis time is the time of the recording.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..helpers.require import require_program
from .record_bank import RECORDING as BANK
from .sdk_chain import MNEMONICS, SDK

RECORDING = BANK.with_name("simd_genesis.json.gz")
VERSIONS = ("0.50.15", "0.53.8", "0.55.0")

# The last two are made of words in the examples of BIP 39.
WORDS = (
    *MNEMONICS,
    "letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
    " ".join(["zoo"] * 11 + ["wrong"]),
)
KEYRING = "--keyring-backend=test"
VERSION = "github.com/cosmos/cosmos-sdk/version"
# Addresses for documentation of RFC 5737, and the validators' tokens and commissions.
GENTXS = (
    ("192.0.2.1", "70000000stake", "0.10"),
    ("192.0.2.2", "50000001stake", "0.05"),
    ("192.0.2.3", "10999999stake", "0.20"),
)


@dataclass(frozen=True)
class Home:
    """A home folder, and the program that works in it."""

    program: Path
    folder: Path

    def run(self, *args: str, stdin: str = "") -> None:
        command = [str(self.program), *args, "--home", str(self.folder)]
        subprocess.run(command, check=True, input=stdin, text=True)

    def init(self, number: int, chain_id: str) -> None:
        """Make a home whose keys belong to the words ``number``."""
        name, words = f"node{number}", f"{WORDS[number]}\n"
        self.run("init", name, "--chain-id", chain_id, "--recover", stdin=words)
        self.add_key(number)

    def add_key(self, number: int) -> None:
        words = f"{WORDS[number]}\n"
        self.run("keys", "add", f"key{number}", "--recover", KEYRING, stdin=words)

    def gentx(self, number: int, chain_id: str, *options: str) -> None:
        ip, tokens, _ = GENTXS[number]
        options = (*options, "--chain-id", chain_id, "--ip", ip, KEYRING)
        self.run("genesis", "gentx", f"key{number}", tokens, *options)

    @property
    def document(self) -> Path:
        return self.folder / "config" / "genesis.json"

    def key(self) -> str:
        return (self.folder / "config" / "priv_validator_key.json").read_text()


def build(version: str, scratch: Path) -> Path:
    """Return the program of a version."""
    folder = scratch / version
    folder.mkdir()
    for source in (SDK / "genesis").glob("*.go"):
        shutil.copy(source, folder)
    shutil.copy(SDK / "genesis" / f"{version}.mod", folder / "go.mod")
    major, minor, _ = version.split(".")
    flags = f"-X {VERSION}.AppName=simd -X {VERSION}.Version={version}"
    command = [require_program("go"), "build", "-mod=mod", "-buildvcs=false", "-ldflags", flags]
    command += ["-tags", f"sdk{major}{minor}", "-o", "simd", "."]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "simd"


def single(program: Path, scratch: Path) -> tuple[str, list[str]]:
    home, chain_id = Home(program, scratch / "single"), "simd-single"
    home.init(0, chain_id)
    home.run("genesis", "add-genesis-account", "key0", "100000000stake", KEYRING)
    home.gentx(0, chain_id)
    home.run("genesis", "collect-gentxs")
    return home.document.read_text(), [home.key()]


def three(program: Path, scratch: Path) -> tuple[str, list[str]]:
    homes = [Home(program, scratch / f"three{number}") for number in range(3)]
    first, chain_id = homes[0], "simd-three"
    for number, home in enumerate(homes):
        home.init(number, chain_id)
    for number in range(1, 4):
        first.add_key(number)
    coins = ("80000000stake", "60000000stake", "20000000stake", "5000000stake,700token")
    for number, owned in enumerate(coins):
        first.run("genesis", "add-genesis-account", f"key{number}", owned, KEYRING)
    for number, home in enumerate(homes):
        if home is not first:
            shutil.copy(first.document, home.document)
        rates = ("--commission-rate", GENTXS[number][2], "--commission-max-rate", "0.5")
        home.gentx(number, chain_id, *rates, "--details", f"validator {number}")
        for gentx in (home.folder / "config" / "gentx").iterdir():
            if home is not first:
                shutil.copy(gentx, first.folder / "config" / "gentx")
    first.run("genesis", "collect-gentxs")
    return first.document.read_text(), [home.key() for home in homes]


def main() -> None:
    """Build the commands of each version, and write what they write."""
    recorded: dict[str, dict[str, dict[str, object]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for version in VERSIONS:
            program = build(version, Path(scratch))
            recorded[version] = {}
            for make in (single, three):
                document, keys = make(program, program.parent)
                recorded[version][make.__name__] = {"document": document, "keys": keys}
    RECORDING.write_bytes(gzip.compress(json.dumps(recorded).encode(), mtime=0))
    print(f"{RECORDING.stat().st_size} bytes, compressed")


if __name__ == "__main__":
    main()
