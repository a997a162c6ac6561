// web3.js over HTTP or a websocket; see helpers.js.
"use strict";

const { Web3 } = require("web3");
const { url, transfer, emitting, CONTRACT, TOPIC, UNKNOWN, step, small, awaited } = require("./helpers");

const web3 = new Web3(url);
web3.eth.transactionPollingInterval = 100;

const block = (b) => ({
  number: b.number,
  hash: b.hash,
  parent: b.parentHash,
  txs: b.transactions,
});
const log = (l) => ({
  address: small(l.address),
  topics: l.topics,
  data: l.data,
  index: Number(l.logIndex),
});

async function main() {
  await step("chain id", () => web3.eth.getChainId());
  await step("block number", () => web3.eth.getBlockNumber());
  const read = await step("block by number", async () => block(await web3.eth.getBlock(3)));
  await step("block by hash", async () => block(await web3.eth.getBlock(read.hash)));
  await step("latest block", async () => block(await web3.eth.getBlock("latest")));
  await step("whole transactions", async () =>
    (await web3.eth.getBlock(3, true)).transactions.map((t) => small(t.from)),
  );
  await step("transaction", async () => {
    const t = await web3.eth.getTransaction((await web3.eth.getBlock(2)).transactions[0]);
    const { hash, nonce, type, blockNumber } = t;
    const value = Number(t.value);
    return { hash, from: small(t.from), to: small(t.to), value, nonce, type, blockNumber };
  });
  await step("receipt", async () => {
    const r = await web3.eth.getTransactionReceipt(read.txs[1]);
    return { status: r.status, gas: r.gasUsed, logs: r.logs.map(log) };
  });
  await step("logs", async () =>
    (await web3.eth.getPastLogs({ fromBlock: 0, address: CONTRACT, topics: [TOPIC] })).map(log),
  );
  await step("nothing", async () => {
    const error = await web3.eth.getTransaction(UNKNOWN).catch((e) => e);
    if (error && error.name !== "TransactionNotFound") throw error;
    return null;
  });
  const waited = web3.eth.sendSignedTransaction(transfer, undefined, {
    // It would run the transaction first to say why it fails.
    checkRevertBeforeSending: false,
  });
  await step("sent", () => new Promise((resolve) => waited.once("transactionHash", resolve)));
  await step("waited for", async () => {
    const r = await waited;
    return { hash: r.transactionHash, status: r.status, number: r.blockNumber };
  });
  if (url.startsWith("ws")) await followed();
  process.exit(0);
}

async function followed() {
  const heads = await web3.eth.subscribe("newBlockHeaders");
  const logs = await web3.eth.subscribe("logs", { address: CONTRACT, topics: [TOPIC] });
  const hashes = await web3.eth.subscribe("pendingTransactions");
  const head = awaited("head"), found = awaited("log"), pending = awaited("transaction");
  heads.on("data", (h) => Number(h.number) > 4 && head.resolve(h.number));
  logs.on("data", (l) => found.resolve(log(l)));
  hashes.on("data", (hash) => pending.resolve(hash));
  await web3.eth.requestManager.send({
    method: "eth_sendRawTransaction",
    params: [emitting],
  });
  await step("told of", async () => ({
    head: await head.promise,
    log: await found.promise,
    pending: await pending.promise,
  }));
}

main();
