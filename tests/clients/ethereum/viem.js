// viem over HTTP or a websocket; see helpers.js.
"use strict";

const { createPublicClient, defineChain, http, webSocket } = require("viem");
const { url, transfer, emitting, many } = require("./helpers");
const { CONTRACT, TOPIC, UNKNOWN, step, small, awaited } = require("./helpers");

const isSocket = url.startsWith("ws");
const chain = defineChain({
  id: 9000,
  name: "node",
  nativeCurrency: { name: "ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const client = createPublicClient({
  chain,
  transport: isSocket ? webSocket(url) : http(url),
  pollingInterval: 100,
  cacheTime: 0,
});
const TYPES = { legacy: 0, eip2930: 1, eip1559: 2, eip4844: 3, eip7702: 4 };

const block = (b) => ({
  number: b.number,
  hash: b.hash,
  parent: b.parentHash,
  txs: b.transactions,
});
const log = (l) => ({ address: l.address, topics: l.topics, data: l.data, index: l.logIndex });

async function main() {
  await step("chain id", () => client.getChainId());
  await step("block number", () => client.getBlockNumber());
  const read = await step("block by number", async () =>
    block(await client.getBlock({ blockNumber: 3n })),
  );
  await step("block by hash", async () =>
    block(await client.getBlock({ blockHash: read.hash })),
  );
  await step("latest block", async () => block(await client.getBlock({ blockTag: "latest" })));
  await step("whole transactions", async () => {
    const whole = await client.getBlock({ blockNumber: 3n, includeTransactions: true });
    return whole.transactions.map((t) => small(t.from));
  });
  await step("transaction", async () => {
    const { transactions } = await client.getBlock({ blockNumber: 2n });
    const t = await client.getTransaction({ hash: transactions[0] });
    const { hash, value, nonce, blockNumber } = t;
    const type = TYPES[t.type];
    return { hash, from: small(t.from), to: small(t.to), value, nonce, type, blockNumber };
  });
  await step("receipt", async () => {
    const r = await client.getTransactionReceipt({ hash: read.txs[1] });
    return { status: r.status === "success" ? 1 : 0, gas: r.gasUsed, logs: r.logs.map(log) };
  });
  await step("logs", async () => {
    const criteria = { fromBlock: "0x0", address: CONTRACT, topics: [TOPIC] };
    const found = await client.request({ method: "eth_getLogs", params: [criteria] });
    return found.map((l) => ({ ...log(l), index: Number(l.logIndex) }));
  });
  await step("nothing", async () => {
    const error = await client.getTransaction({ hash: UNKNOWN }).catch((e) => e);
    if (error.name !== "TransactionNotFoundError") throw error;
    return null;
  });
  const hash = await step("sent", () =>
    client.sendRawTransaction({ serializedTransaction: transfer }),
  );
  await step("waited for", async () => {
    const r = await client.waitForTransactionReceipt({ hash, timeout: 100_000 });
    const status = r.status === "success" ? 1 : 0;
    return { hash: r.transactionHash, status, number: r.blockNumber };
  });
  if (isSocket) await followed();
  else await step("batch", batched);
  await step("pending under load", polled);
  process.exit(0);
}

/** A client whose calls of one moment are sent together, at most so many. */
function batching(batchSize, onFetchRequest) {
  return createPublicClient({ chain, transport: http(url, { batch: { batchSize }, onFetchRequest }) });
}

/** A thousand calls: how many requests they took, and the numbers of the blocks they found. */
async function batched() {
  let requests = 0;
  const own = batching(1000, () => void (requests += 1));
  const calls = Array.from({ length: 1000 }, (_, i) => own.getBlock({ blockNumber: BigInt(i % 4) }));
  const found = await Promise.all(calls);
  return { requests, blocks: found.map((b) => b.number) };
}

/** What a filter tells of transactions while they are sent, and blocks take them. */
async function polled() {
  const filter = await client.createPendingTransactionFilter();
  const sender = isSocket ? client : batching(50);
  const sent = (async () => {
    for (let i = 0; i < many.length; i += 50)
      await Promise.all(
        many.slice(i, i + 50).map((tx) => sender.sendRawTransaction({ serializedTransaction: tx })),
      );
  })();
  const told = [];
  while (told.length < many.length) told.push(...(await client.getFilterChanges({ filter })));
  await sent;
  told.push(...(await client.getFilterChanges({ filter })));
  return told.sort();
}

async function followed() {
  const head = awaited("head"), found = awaited("log"), pending = awaited("transaction");
  const take = (wanted) => ({ onError: wanted.reject });
  client.watchBlockNumber({
    onBlockNumber: (number) => number > 4n && head.resolve(number),
    ...take(head),
  });
  client.watchEvent({
    address: CONTRACT,
    onLogs: ([l]) => found.resolve(log(l)),
    ...take(found),
  });
  client.watchPendingTransactions({
    onTransactions: ([hash]) => pending.resolve(hash),
    ...take(pending),
  });
  // It starts them without telling when they have begun; answers come in order.
  await client.getBlockNumber();
  await client.sendRawTransaction({ serializedTransaction: emitting });
  await step("told of", async () => ({
    head: await head.promise,
    log: await found.promise,
    pending: await pending.promise,
  }));
}

main();
