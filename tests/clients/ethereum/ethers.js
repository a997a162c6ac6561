// ethers over HTTP or a websocket; see helpers.js.
"use strict";

const { JsonRpcProvider, WebSocketProvider } = require("ethers");
const helpers = require("./helpers");
const { url, transfer, emitting, CONTRACT, TOPIC, UNKNOWN, step, small, awaited, until } = helpers;

const isSocket = url.startsWith("ws");
// Its own cache would show a chain of a quarter of a second ago.
const provider = isSocket
  ? new WebSocketProvider(url)
  : new JsonRpcProvider(url, undefined, { cacheTimeout: -1 });

const block = (b) => ({
  number: b.number,
  hash: b.hash,
  parent: b.parentHash,
  txs: b.transactions,
});
const log = (l) => ({ address: small(l.address), topics: l.topics, data: l.data, index: l.index });

async function main() {
  await step("chain id", async () => (await provider.getNetwork()).chainId);
  await step("block number", () => provider.getBlockNumber());
  const read = await step("block by number", async () => block(await provider.getBlock(3)));
  await step("block by hash", async () => block(await provider.getBlock(read.hash)));
  await step("latest block", async () => block(await provider.getBlock("latest")));
  await step("whole transactions", async () =>
    (await provider.getBlock(3, true)).prefetchedTransactions.map((t) => small(t.from)),
  );
  await step("transaction", async () => {
    const t = await provider.getTransaction((await provider.getBlock(2)).transactions[0]);
    const { hash, value, nonce, type, blockNumber } = t;
    return { hash, from: small(t.from), to: small(t.to), value, nonce, type, blockNumber };
  });
  await step("receipt", async () => {
    const r = await provider.getTransactionReceipt(read.txs[1]);
    return { status: r.status, gas: r.gasUsed, logs: r.logs.map(log) };
  });
  await step("logs", async () =>
    (await provider.getLogs({ fromBlock: 0, address: CONTRACT, topics: [TOPIC] })).map(log),
  );
  await step("nothing", () => provider.getTransaction(UNKNOWN));
  const hash = await step("sent", () => provider.send("eth_sendRawTransaction", [transfer]));
  await step("waited for", async () => {
    // Its own wait begins with the next block, and here none needs to come.
    const r = await until(() => provider.getTransactionReceipt(hash));
    return { hash: r.hash, status: r.status, number: r.blockNumber };
  });
  if (isSocket) await followed();
  await provider.destroy();
}

async function followed() {
  const head = awaited("head"), found = awaited("log"), pending = awaited("transaction");
  await provider.on("block", (number) => number > 4 && head.resolve(number));
  await provider.on({ address: CONTRACT, topics: [TOPIC] }, (l) => found.resolve(log(l)));
  await provider.on("pending", (hash) => pending.resolve(hash));
  await provider.send("eth_sendRawTransaction", [emitting]);
  await step("told of", async () => ({
    head: await head.promise,
    log: await found.promise,
    pending: await pending.promise,
  }));
}

main();
