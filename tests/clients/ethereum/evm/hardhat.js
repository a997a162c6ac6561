// npx hardhat run --no-compile --network NETWORK hardhat.js
//
// With the network "node" the node signs, with "keys" hardhat does. It uses what hardhat's own
// provider has, as its plugins and hardhat-network-helpers do.
"use strict";

const hre = require("hardhat");
const ethers = require("ethers");
const { abi, bytecode } = require("./Counter.json");
const { step } = require("../helpers");

const { provider, name } = hre.network;
const coder = new ethers.Interface(abi);
const NOBODY = "0x" + "97".repeat(20);
const ask = (method, ...params) => provider.request({ method, params });
const number = async (method, ...params) => Number(await ask(method, ...params));
const receipt = (hash) => ask("eth_getTransactionReceipt", hash);

async function sent(tx) {
  const hash = await ask("eth_sendTransaction", tx);
  // The chain makes a block of each transaction at once.
  return receipt(hash);
}

async function failure(data, to) {
  try {
    await ask("eth_call", { to, data }, "latest");
  } catch (error) {
    const found = typeof error.data === "string" ? error.data : error.data?.data;
    const parsed = coder.parseError(found);
    return { message: error.message, name: parsed.name, last: parsed.args[parsed.args.length - 1] };
  }
  throw new Error("nothing was thrown");
}

async function main() {
  const [from] = await ask("eth_accounts");
  await step("chain id", () => number("eth_chainId"));
  const data = bytecode + coder.encodeDeploy([7]).slice(2);
  const deployed = await sent({ from, data });
  const to = deployed.contractAddress;
  const call = (method, ...args) => coder.encodeFunctionData(method, args);
  await step("deployed", () => Number(deployed.status));
  await step("sent", async () => {
    const { status, logs } = await sent({ from, to, data: call("add", 5) });
    return [Number(status), coder.parseLog(logs[0]).args.total];
  });
  await step("logs", async () => {
    const topics = [coder.getEvent("Added").topicHash];
    return (await ask("eth_getLogs", { address: to, fromBlock: "0x0", topics })).length;
  });
  await step("called", () => number("eth_call", { to, data: call("total") }, "latest"));
  await step("reason", () => failure(call("add", 0), to));
  await step("custom error", () => failure(call("add", 2000), to));
  await step("panic", () => failure(call("take", 1000000), to));
  if (name === "node") await helped(from);
}

/** With hardhat-network-helpers. */
async function helped(from) {
  const { loadFixture, mine, time, ...helpers } = require(
    "@nomicfoundation/hardhat-network-helpers"
  );
  const begun = async () => number("eth_blockNumber");
  const height = await loadFixture(begun);
  await step("mine", async () => {
    await mine(5);
    return (await number("eth_blockNumber")) - height;
  });
  await step("mine at intervals", async () => {
    const before = await time.latest();
    await mine(3, { interval: 60 });
    return (await time.latest()) - before >= 120;
  });
  await step("time.increase", async () => {
    const before = await time.latest();
    return (await time.increase(3600)) - before >= 3600;
  });
  await step("time.increaseTo", async () => {
    const wanted = (await time.latest()) + 100;
    await time.increaseTo(wanted);
    return (await time.latest()) === wanted;
  });
  await step("time.setNextBlockTimestamp", async () => {
    const wanted = (await time.latest()) + 55;
    await time.setNextBlockTimestamp(wanted);
    await sent({ from, to: NOBODY });
    return (await time.latest()) === wanted;
  });
  await step("accounts", async () => {
    await helpers.setBalance(NOBODY, 10n ** 18n);
    await helpers.setCode(NOBODY, "0x6001");
    await helpers.setNonce(NOBODY, 3);
    await helpers.setStorageAt(NOBODY, 1, 42);
    return [await number("eth_getBalance", NOBODY, "latest"),
      await ask("eth_getCode", NOBODY, "latest"),
      await number("eth_getTransactionCount", NOBODY, "latest"),
      Number(await helpers.getStorageAt(NOBODY, 1))];
  });
  await step("impersonateAccount", async () => {
    await helpers.impersonateAccount(NOBODY);
    const { status } = await sent({ from: NOBODY, to: from, value: "0x1" });
    await helpers.stopImpersonatingAccount(NOBODY);
    return Number(status);
  });
  await step("takeSnapshot", async () => {
    const before = await time.latestBlock();
    const snapshot = await helpers.takeSnapshot();
    await mine();
    await snapshot.restore();
    return (await time.latestBlock()) - before;
  });
  await step("setPrevRandao", async () => {
    await helpers.setPrevRandao(5);
    await mine();
    return Number((await ask("eth_getBlockByNumber", "latest", false)).mixHash);
  });
  await step("metadata", async () => (await ask("hardhat_metadata")).chainId);
  await step("loadFixture", async () => {
    await loadFixture(begun);
    return (await time.latestBlock()) - height;
  });
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
