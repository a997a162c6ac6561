// OpenZeppelin's ERC-20 token and Uniswap V3 on a chain and its fork, with ethers:
//
//     node fork.js deploy URL
//     node fork.js use URL BLOCK
//
// The first deploys the contracts; the second uses them, and reads the state after BLOCK, the last one of the first. Both print what
// they have seen, which does not depend on the node or the clock.
"use strict";

const { Contract, ContractFactory, JsonRpcProvider, Wallet, getCreateAddress, id, parseEther } = require("ethers");
const { until } = require("./helpers");

const [task, url, block] = process.argv.slice(2);
const periphery = "@uniswap/v3-periphery/artifacts/contracts";
const Token = require("@openzeppelin/contracts/build/contracts/ERC20PresetMinterPauser.json");
const Weth = require("canonical-weth/build/contracts/WETH9.json");
const Factory = require("@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json");
const Pool = require("@uniswap/v3-core/artifacts/contracts/UniswapV3Pool.sol/UniswapV3Pool.json");
const Manager = require(`${periphery}/NonfungiblePositionManager.sol/NonfungiblePositionManager.json`);
const Router = require(`${periphery}/SwapRouter.sol/SwapRouter.json`);

class Provider extends JsonRpcProvider {
  /** Nodes estimate with the time of the latest block, and the pool writes one more slot in a later second. */
  async estimateGas(tx) {
    return ((await super.estimateGas(tx)) * 3n) / 2n;
  }
}

const provider = new Provider(url, undefined, { cacheTimeout: -1 });
const [owner, spender] = ["owner", "spender"].map((name) => new Wallet(id(name), provider));
const NOBODY = `0x${"9".repeat(40)}`, ZERO = `0x${"0".repeat(40)}`;
const FEE = 3000, DEADLINE = 2n ** 40n, LARGE = parseEther("1000000");
// Whoever pays more than the base fee pays the same in each block.
const PRICE = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 10n };

// The owner deploys these in this order.
const at = (nonce, { abi }) => new Contract(getCreateAddress({ from: owner.address, nonce }), abi, owner);
const token = at(0, Token), weth = at(1, Weth), factory = at(2, Factory), manager = at(3, Manager), router = at(4, Router);
const pair = [token.target, weth.target].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));

const seen = {};
const shown = (value) => JSON.parse(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? String(each) : each)));

async function receiptOf(hash) {
  return until(() => provider.getTransactionReceipt(hash));
}

/** Send a transaction, and note its result. */
async function send(name, method, ...args) {
  const { hash } = await method(...args, PRICE);
  const { status, gasUsed, logs } = await receiptOf(hash);
  if (!status) throw new Error(`${name}: the transaction failed`);
  seen[name] = { gasUsed, logs: logs.map(({ address, topics, data }) => ({ address, topics, data })) };
}

/** Note what a call returns, or the reason for which it fails. */
async function read(name, method, ...args) {
  seen[name] = await method(...args).catch((error) => error.reason ?? error.code);
}

async function readState(name, overrides) {
  const pool = new Contract(await factory.getPool(...pair, FEE, overrides), Pool.abi, provider);
  const calls = { slot0: [], liquidity: [], feeGrowthGlobal0X128: [], feeGrowthGlobal1X128: [] };
  for (const [method, args] of Object.entries(calls)) await read(`${name} ${method}`, pool[method], ...args, overrides);
  for (const tick of [-600, -120, 120, 600]) {
    // The other members depend on the time.
    seen[`${name} tick ${tick}`] = (await pool.ticks(tick, overrides)).slice(0, 4);
  }
  for (const position of [1, 2]) await read(`${name} position ${position}`, manager.positions, position, overrides);
  for (const who of [owner.address, spender.address, pool.target, NOBODY]) {
    await read(`${name} ether of ${who}`, (...args) => provider.getBalance(...args), who, overrides.blockTag);
    await read(`${name} WETH of ${who}`, weth.balanceOf, who, overrides);
    await read(`${name} tokens of ${who}`, token.balanceOf, who, overrides);
    await read(`${name} positions of ${who}`, manager.balanceOf, who, overrides);
  }
  await read(`${name} supply`, token.totalSupply, overrides);
  await read(`${name} allowance`, token.allowance, owner.address, spender.address, overrides);
}

const swap = (tokenIn, amountIn, recipient) => ({
  tokenIn, amountIn, recipient, tokenOut: pair.find((each) => each !== tokenIn),
  fee: FEE, deadline: DEADLINE, amountOutMinimum: 0, sqrtPriceLimitX96: 0,
});

const position = (tick, amount) => ({
  token0: pair[0], token1: pair[1], fee: FEE, tickLower: -tick, tickUpper: tick, recipient: owner.address,
  amount0Desired: amount, amount1Desired: amount, amount0Min: 0, amount1Min: 0, deadline: DEADLINE,
});

async function deploy() {
  const [rich] = await provider.send("eth_accounts", []);
  for (const { address } of [owner, spender]) {
    const funds = { from: rich, to: address, value: `0x${parseEther("1000").toString(16)}` };
    await receiptOf(await provider.send("eth_sendTransaction", [funds]));
  }
  const contracts = [
    [Token, "Token", "TKN"], [Weth], [Factory], [Manager, factory.target, weth.target, ZERO], [Router, factory.target, weth.target],
  ];
  for (const [{ contractName, abi, bytecode }, ...args] of contracts) {
    const creation = new ContractFactory(abi, bytecode, owner);
    await send(contractName, async (...given) => (await creation.deploy(...given)).deploymentTransaction(), ...args);
  }
  await send("mint tokens", token.mint, owner.address, LARGE);
  await send("wrap ether", async (price) => weth.deposit({ value: parseEther("500"), ...price }));
  for (const contract of [token, weth]) {
    for (const user of [manager, router]) await send("approve", contract.approve, user.target, LARGE);
  }
  await send("create a pool", manager.createAndInitializePoolIfNecessary, ...pair, FEE, 2n ** 96n);
  await send("mint a position", manager.mint, position(600, parseEther("100")));
  await send("swap", router.exactInputSingle, swap(token.target, parseEther("1"), owner.address));
}

async function use() {
  const before = { blockTag: Number(block) };
  await readState("before", before);
  // ERC-20.
  await send("transfer", token.transfer, NOBODY, 5);
  await send("approve", token.approve, spender.address, 100);
  await send("transferFrom", token.connect(spender).transferFrom, owner.address, spender.address, 60);
  await read("allowance exceeded", token.connect(spender).transferFrom.staticCall, owner.address, NOBODY, 60);
  await read("balance exceeded", token.connect(spender).transfer.staticCall, NOBODY, 61);
  await read("not a minter", token.connect(spender).mint.staticCall, NOBODY, 1);
  await send("mint tokens", token.mint, spender.address, LARGE);
  await send("burn tokens", token.burn, 7);
  await send("pause", token.pause);
  await read("paused", token.transfer.staticCall, NOBODY, 1);
  await send("unpause", token.unpause);
  // Uniswap: swaps leave and enter the range of the second position.
  await send("swap tokens", router.exactInputSingle, swap(token.target, parseEther("1"), spender.address));
  await send("mint a position", manager.mint, position(120, parseEther("10")));
  await send("swap many tokens", router.exactInputSingle, swap(token.target, parseEther("50"), owner.address));
  await send("swap ether", async (price) =>
    router.exactInputSingle(swap(weth.target, parseEther("60"), NOBODY), { value: parseEther("60"), ...price }));
  await send("swap for ether", router.multicall, [
    router.interface.encodeFunctionData("exactInputSingle", [swap(token.target, parseEther("1"), ZERO)]),
    router.interface.encodeFunctionData("unwrapWETH9", [0, NOBODY]),
  ]);
  await read("no such position", manager.positions, 3);
  await read("not the owner's", manager.connect(spender).burn.staticCall, 2);
  await readState("middle", {});
  const all = { recipient: owner.address, amount0Max: 2n ** 100n, amount1Max: 2n ** 100n };
  await send("collect fees", manager.collect, { tokenId: 1, ...all });
  const { liquidity } = await manager.positions(2);
  await send("remove liquidity", manager.decreaseLiquidity, { tokenId: 2, liquidity, amount0Min: 0, amount1Min: 0, deadline: DEADLINE });
  await send("collect all", manager.collect, { tokenId: 2, ...all });
  await send("burn the position", manager.burn, 2);
  await readState("after", {});
  await readState("before, again", before);
  const logs = await provider.getLogs({ fromBlock: before.blockTag + 1, address: [token.target, factory.target] });
  seen.logs = logs.map(({ topics, data }) => ({ topics, data }));
}

(task === "deploy" ? deploy : use)().then(() => {
  console.log(JSON.stringify(shown(seen)));
  provider.destroy();
}, (error) => {
  console.error(error);
  process.exit(1);
});
