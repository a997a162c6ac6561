// npx hardhat run --no-compile --network NETWORK hardhat.js
//
// With the network "node" the node signs, with "keys" hardhat does. It uses what hardhat's own
// provider has, as its plugins and hardhat-network-helpers do.
"use strict";

const hre = require("hardhat");
const ethers = require("ethers");
const { abi, bytecode } = require("./Counter.json");
const { step } = require("../kit");

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

/** What hardhat-network-helpers ask for. */
async function helped(from) {
  const time = async () => Number((await ask("eth_getBlockByNumber", "latest", false)).timestamp);
  const id = await ask("evm_snapshot");
  const height = await number("eth_blockNumber");
  await step("mine", async () => {
    await ask("hardhat_mine", "0x5");
    return (await number("eth_blockNumber")) - height;
  });
  await step("time.increase", async () => {
    const before = await time();
    await ask("evm_increaseTime", 3600);
    await ask("evm_mine");
    return (await time()) - before >= 3600;
  });
  await step("time.increaseTo", async () => {
    const wanted = (await time()) + 100;
    await ask("evm_setNextBlockTimestamp", "0x" + wanted.toString(16));
    await ask("evm_mine");
    return (await time()) === wanted;
  });
  await ask("hardhat_setBalance", NOBODY, "0xde0b6b3a7640000");
  await step("impersonateAccount", async () => {
    await ask("hardhat_impersonateAccount", NOBODY);
    const { status } = await sent({ from: NOBODY, to: from, value: "0x1" });
    await ask("hardhat_stopImpersonatingAccount", NOBODY);
    return Number(status);
  });
  await step("metadata", async () => (await ask("hardhat_metadata")).chainId);
  await step("revert", async () => {
    const done = await ask("evm_revert", id);
    return [done, (await number("eth_blockNumber")) - height];
  });
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
