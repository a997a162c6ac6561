// ethers over HTTP or a websocket; see helpers.js.
"use strict";

const ethers = require("ethers");
const helpers = require("./helpers");
const { url, account, key, abi, bytecode, step, added, thrown } = helpers;

const isSocket = url.startsWith("ws");
// Its own cache would show a chain of a quarter of a second ago.
const provider = isSocket
  ? new ethers.WebSocketProvider(url)
  : new ethers.JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });

const shown = ({ args }) => added(args.by, args.amount, args.total);

async function main() {
  await step("chain id", async () => (await provider.getNetwork()).chainId);
  const signer = key
    ? new ethers.NonceManager(new ethers.Wallet(key, provider))
    : await provider.getSigner(account);
  const factory = new ethers.ContractFactory(abi, bytecode, signer);
  const contract = await factory.deploy(helpers.FIRST);
  const address = await contract.getAddress();
  await step("deployed", async () => {
    await contract.waitForDeployment();
    return { status: (await contract.deploymentTransaction().wait()).status };
  });

  const receipt = await (await contract.add(5)).wait();
  await step("sent", () => ({
    status: receipt.status,
    events: receipt.logs.map((log) => shown(contract.interface.parseLog(log))),
  }));
  await step("logs", async () =>
    (await contract.queryFilter(contract.filters.Added(account, 5), 0)).map(shown),
  );
  await step("raw logs", async () => {
    const topics = [contract.interface.getEvent("Added").topicHash];
    return (await provider.getLogs({ fromBlock: 0, address, topics })).length;
  });
  await step("called", async () => [await contract.total(), await contract.plus(3)]);
  await step("estimated", async () => {
    const gas = await contract.add.estimateGas(5);
    return gas >= 21000n && gas <= receipt.gasUsed;
  });

  await step("reason", async () => (await thrown(() => contract.add.staticCall(0))).reason);
  await step("reason of an estimate", async () =>
    (await thrown(() => contract.add.estimateGas(0))).reason,
  );
  await step("custom error", async () => {
    const { revert } = await thrown(() => contract.add.staticCall(2000));
    return helpers.failure(revert.name, revert.args);
  });
  await step("panic", async () => {
    const { revert } = await thrown(() => contract.take.staticCall(1000000));
    return revert.args[0];
  });
  await step("failed", async () => {
    const sent = await contract.take(1000000, { gasLimit: 100000 });
    return (await thrown(() => sent.wait())).receipt.status;
  });

  await step("quick sends", async () => {
    const first = await provider.getTransactionCount(account);
    const request = { to: helpers.NOBODY, value: 1 };
    const sent = await Promise.all(helpers.QUICK.map(() => signer.sendTransaction(request)));
    const receipts = await Promise.all(sent.map((tx) => tx.wait()));
    const nonces = sent.map((tx) => tx.nonce);
    return [helpers.consecutive(nonces, first), ...receipts.map((r) => r.status)];
  });
  await step("fees", async () => {
    const { maxFeePerGas, maxPriorityFeePerGas } = await provider.getFeeData();
    const { baseFeePerGas } = await provider.getBlock("latest");
    return maxFeePerGas >= baseFeePerGas && maxPriorityFeePerGas > 0n;
  });
  await step("state", async () => ({
    slot: BigInt(await provider.getStorage(address, 0)),
    code: (await provider.getCode(address)).length > 2,
    nonce: await provider.getTransactionCount(address),
    balance: await provider.getBalance(address),
    proved: BigInt(
      (await provider.send("eth_getProof", [address, ["0x0"], "latest"])).storageProof[0].value,
    ),
  }));
  await followed(contract);
  provider.destroy();
}

/** Resolved as soon as a method is answered that is asked from now on. */
function answered(method) {
  const made = helpers.awaited(method), asked = new Set();
  provider.on("debug", ({ action, payload, result }) => {
    for (const call of [payload ?? []].flat()) if (call.method === method) asked.add(call.id);
    if (action === "receiveRpcResult" && result.some(({ id }) => asked.has(id))) made.resolve();
  });
  return made.promise;
}

async function followed(contract) {
  const head = helpers.awaited("head"), found = helpers.awaited("event");
  const last = await provider.getBlockNumber();
  // Over HTTP it polls a filter behind the back of `on`, for what comes after that.
  const begun = isSocket ? [] : ["eth_getFilterChanges", "eth_blockNumber"].map(answered);
  await provider.on("block", (number) => number > last && head.resolve(true));
  await contract.on("Added", (by, amount, total) => found.resolve(added(by, amount, total)));
  await Promise.all(begun);
  await (await contract.add(1)).wait();
  await step("told of", async () => ({ head: await head.promise, event: await found.promise }));
}

main();
