// web3.js over HTTP or a websocket; see helpers.js.
"use strict";

const { Web3, ContractExecutionError } = require("web3");
const helpers = require("./helpers");
const { url, account, key, abi, bytecode, step, added, thrown } = helpers;

const web3 = new Web3(url);
web3.eth.transactionPollingInterval = 50;
if (key) web3.eth.accounts.wallet.add(key);

const SLOT = "0x" + "0".repeat(64);
const shown = ({ returnValues: found }) => added(found.by, found.amount, found.total);

async function main() {
  await step("chain id", () => web3.eth.getChainId());
  let contract = new web3.eth.Contract(abi, undefined, { from: account });
  contract.transactionPollingInterval = 50;
  await step("deployed", async () => {
    const sent = contract.deploy({ data: bytecode, arguments: [helpers.FIRST] });
    let status = null;
    const wait = sent.send({ from: account });
    wait.on("receipt", (receipt) => (status = receipt.status));
    contract = await wait;
    contract.transactionPollingInterval = 50;
    return { status };
  });
  const address = contract.options.address;
  const { add, take, total, plus } = contract.methods;

  const receipt = await add(5).send({ from: account });
  await step("sent", () => ({ status: receipt.status, events: [shown(receipt.events.Added)] }));
  await step("logs", async () => {
    const criteria = { fromBlock: 0, filter: { by: account, amount: 5 } };
    return (await contract.getPastEvents("Added", criteria)).map(shown);
  });
  await step("raw logs", async () => {
    const topics = [web3.utils.sha3("Added(address,uint256,uint256)")];
    return (await web3.eth.getPastLogs({ fromBlock: 0, address, topics })).length;
  });
  await step("called", async () => [await total().call(), await plus(3).call()]);
  await step("estimated", async () => {
    const gas = await add(5).estimateGas({ from: account });
    return gas >= 21000n && gas <= receipt.gasUsed;
  });

  const reason = (error) => decoded(error).args[0];
  await step("reason", async () => reason(await thrown(() => add(0).call({ from: account }))));
  await step("reason of an estimate", async () =>
    reason(await thrown(() => add(0).estimateGas({ from: account }))),
  );
  await step("custom error", async () => {
    const { name, args } = decoded(await thrown(() => add(2000).call({ from: account })));
    return helpers.failure(name, args);
  });
  await step("panic", async () =>
    Number(decoded(await thrown(() => take(1000000).call({ from: account }))).args[0]),
  );
  await step("failed", async () => {
    const error = await thrown(() => take(1000000).send({ from: account, gas: "100000" }));
    return error.receipt.status;
  });

  await step("quick sends", async () => {
    const first = await web3.eth.getTransactionCount(account);
    // With a key of its own it takes no notice of what it has sent itself.
    const nonce = (i) => (key ? { nonce: first + BigInt(i) } : {});
    const request = (i) => ({ from: account, to: helpers.NOBODY, value: 1, ...nonce(i) });
    const receipts = await Promise.all(
      helpers.QUICK.map((i) => web3.eth.sendTransaction(request(i))),
    );
    const hashes = receipts.map((r) => r.transactionHash);
    const txs = await Promise.all(hashes.map((hash) => web3.eth.getTransaction(hash)));
    return [helpers.consecutive(txs.map((tx) => tx.nonce), first), ...receipts.map((r) => r.status)];
  });
  await step("fees", async () => {
    const { maxFeePerGas, maxPriorityFeePerGas } = await web3.eth.calculateFeeData();
    const { baseFeePerGas } = await web3.eth.getBlock();
    return maxFeePerGas >= baseFeePerGas && maxPriorityFeePerGas > 0n;
  });
  await step("state", async () => ({
    slot: BigInt(await web3.eth.getStorageAt(address, 0)),
    code: (await web3.eth.getCode(address)).length > 2,
    nonce: await web3.eth.getTransactionCount(address),
    balance: await web3.eth.getBalance(address),
    proved: (await web3.eth.getProof(address, [SLOT])).storageProof[0].value,
  }));
  if (url.startsWith("ws")) await followed(contract);
  process.exit(0);
}

/** The name and the arguments of what a contract threw. */
function decoded(error) {
  if (!(error instanceof ContractExecutionError)) throw error;
  const { data, errorName, errorArgs } = error.cause;
  if (errorName && errorArgs) return { name: errorName, args: Object.values(errorArgs) };
  // Of Solidity's own errors it gives the bytes.
  const types = data.startsWith("0x4e487b71") ? ["uint256"] : ["string"];
  const args = web3.eth.abi.decodeParameters(types, "0x" + data.slice(10));
  return { name: null, args: [args[0]] };
}

async function followed(contract) {
  const head = helpers.awaited("head"), found = helpers.awaited("event");
  const last = await web3.eth.getBlockNumber();
  const heads = await web3.eth.subscribe("newHeads");
  heads.on("data", ({ number }) => number > last && head.resolve(true));
  const events = contract.events.Added();
  events.on("data", (log) => found.resolve(shown(log)));
  await new Promise((resolve) => events.on("connected", resolve));
  await contract.methods.add(1).send({ from: account });
  await step("told of", async () => ({ head: await head.promise, event: await found.promise }));
}

main();
