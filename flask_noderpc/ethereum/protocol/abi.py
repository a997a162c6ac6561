"""Values of Solidity's ABI as text, and the functions of well-known contracts.

The explorer decodes calls of other contracts by an ABI that its reader pastes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ...protocol.secp256k1eth import keccak, to_checksum
from .forms import WORD

_MAX_ELEMENTS = 20
_MAX_BYTES = 2_048
"""Maximum elements of an array, and bytes of a string, that are shown."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a contract: its name, and types and names of its parameters."""

    name: str
    types: tuple[str, ...]
    names: tuple[str, ...]
    signature: str
    """Name and types, whose hash is the selector."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call as text."""

    name: str
    type: str
    text: str


def value(kind: str, data: bytes, index: int) -> str:
    """Return the value at the head position ``index`` as text, without any part that is missing
    in the data."""
    word = data[index * WORD : (index + 1) * WORD].ljust(WORD, b"\0")
    show = _SHOWN.get(kind)
    if show is not None:
        return show(word)
    if kind.startswith("bytes") and kind[5:].isdecimal():
        return f"0x{word[: int(kind[5:])].hex()}"
    start = int.from_bytes(word)
    size, start = int.from_bytes(data[start : start + WORD]), start + WORD
    if kind.endswith("[]"):
        return _elements(kind.removesuffix("[]"), data[start:], size)
    found = data[start : start + min(size, _MAX_BYTES)]
    text = found.decode(errors="replace") if kind == "string" else f"0x{found.hex()}"
    return f"{text}…" if min(size, len(data) - start) > _MAX_BYTES else text


def _elements(kind: str, data: bytes, count: int) -> str:
    shown = min(count, _MAX_ELEMENTS, len(data) // WORD)
    texts = [value(kind, data, index) for index in range(shown)]
    return f"[{', '.join(texts)}{', …' if shown < count else ''}]"


_SHOWN: dict[str, Callable[[bytes], str]] = {
    "uint256": lambda word: str(int.from_bytes(word)),
    "int256": lambda word: str(int.from_bytes(word, signed=True)),
    "bool": lambda word: "true" if any(word) else "false",
    "address": lambda word: to_checksum(word[12:]),
}
_SHOWN |= dict.fromkeys(("uint8", "uint24", "uint160"), _SHOWN["uint256"])


def function(calldata: bytes) -> Function | None:
    """Return the well-known function that calldata calls, by its selector."""
    return _functions().get(calldata[:4])


def arguments(called: Function, calldata: bytes) -> tuple[Argument, ...]:
    """Return the arguments of a call; empty if the calldata is too short for them."""
    data = calldata[4:]
    if len(data) < WORD * len(called.types):
        return ()
    return tuple(
        Argument(name, kind, value(kind, data, index))
        for index, (kind, name) in enumerate(zip(called.types, called.names, strict=True))
    )


@lru_cache(1)
def _functions() -> dict[bytes, Function]:
    made = map(_parsed, _WELL_KNOWN.split(";")[:-1])
    return {keccak(each.signature.encode())[:4]: each for each in made}


def _parsed(declaration: str) -> Function:
    name, _, inside = declaration.strip().partition("(")
    is_tuple = inside.startswith("(")
    pairs = [each.split() for each in inside.strip("()").split(",") if each]
    types, names = tuple(kind for kind, _ in pairs), tuple(own for _, own in pairs)
    listed = ",".join(types)
    # The members of a tuple whose types have a fixed size are encoded like parameters. A
    # function with another tuple is only shown by its name.
    if is_tuple and not all(kind in _SHOWN for kind in types):
        types = names = ()
    signature = f"{name}(({listed}))" if is_tuple else f"{name}({listed})"
    return Function(name, types, names, signature)


# ERC-20 and its extensions, WETH, ERC-721, ERC-1155, ERC-4626, Uniswap's routers, owners,
# proxies and wallets.
_WELL_KNOWN = """
transfer(address to, uint256 amount);
approve(address spender, uint256 amount);
transferFrom(address from, address to, uint256 amount);
increaseAllowance(address spender, uint256 amount);
decreaseAllowance(address spender, uint256 amount);
permit(address owner, address spender, uint256 amount, uint256 deadline, uint8 v, bytes32 r,
  bytes32 s);
mint(address to, uint256 amount);
burn(uint256 amount);
burnFrom(address account, uint256 amount);

deposit();
withdraw(uint256 amount);

safeTransferFrom(address from, address to, uint256 id);
safeTransferFrom(address from, address to, uint256 id, bytes data);
setApprovalForAll(address operator, bool approved);
safeMint(address to, uint256 id);
mint(address to);

safeTransferFrom(address from, address to, uint256 id, uint256 amount, bytes data);
safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] amounts, bytes data);
mint(address to, uint256 id, uint256 amount, bytes data);
burn(address from, uint256 id, uint256 amount);

deposit(uint256 assets, address receiver);
mint(uint256 shares, address receiver);
withdraw(uint256 assets, address receiver, address owner);
redeem(uint256 shares, address receiver, address owner);

swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to,
  uint256 deadline);
swapTokensForExactTokens(uint256 amountOut, uint256 amountInMax, address[] path, address to,
  uint256 deadline);
swapExactETHForTokens(uint256 amountOutMin, address[] path, address to, uint256 deadline);
swapTokensForExactETH(uint256 amountOut, uint256 amountInMax, address[] path, address to,
  uint256 deadline);
swapExactTokensForETH(uint256 amountIn, uint256 amountOutMin, address[] path, address to,
  uint256 deadline);
swapETHForExactTokens(uint256 amountOut, address[] path, address to, uint256 deadline);
swapExactTokensForTokensSupportingFeeOnTransferTokens(uint256 amountIn, uint256 amountOutMin,
  address[] path, address to, uint256 deadline);
swapExactETHForTokensSupportingFeeOnTransferTokens(uint256 amountOutMin, address[] path,
  address to, uint256 deadline);
swapExactTokensForETHSupportingFeeOnTransferTokens(uint256 amountIn, uint256 amountOutMin,
  address[] path, address to, uint256 deadline);
addLiquidity(address tokenA, address tokenB, uint256 amountADesired, uint256 amountBDesired,
  uint256 amountAMin, uint256 amountBMin, address to, uint256 deadline);
addLiquidityETH(address token, uint256 amountTokenDesired, uint256 amountTokenMin, uint256
  amountETHMin, address to, uint256 deadline);
removeLiquidity(address tokenA, address tokenB, uint256 liquidity, uint256 amountAMin, uint256
  amountBMin, address to, uint256 deadline);
removeLiquidityETH(address token, uint256 liquidity, uint256 amountTokenMin, uint256
  amountETHMin, address to, uint256 deadline);
exactInputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256
  deadline, uint256 amountIn, uint256 amountOutMinimum, uint160 sqrtPriceLimitX96));
exactOutputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256
  deadline, uint256 amountOut, uint256 amountInMaximum, uint160 sqrtPriceLimitX96));
exactInputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256
  amountIn, uint256 amountOutMinimum, uint160 sqrtPriceLimitX96));
exactOutputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256
  amountOut, uint256 amountInMaximum, uint160 sqrtPriceLimitX96));
exactInput((bytes path, address recipient, uint256 deadline, uint256 amountIn, uint256
  amountOutMinimum));
exactOutput((bytes path, address recipient, uint256 deadline, uint256 amountOut, uint256
  amountInMaximum));
execute(bytes commands, bytes[] inputs);
execute(bytes commands, bytes[] inputs, uint256 deadline);
multicall(bytes[] data);
multicall(uint256 deadline, bytes[] data);

transferOwnership(address newOwner);
renounceOwnership();
grantRole(bytes32 role, address account);
revokeRole(bytes32 role, address account);
pause();
unpause();
upgradeTo(address implementation);
upgradeToAndCall(address implementation, bytes data);
execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas,
  uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes
  signatures);
"""
