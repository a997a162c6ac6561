// Every call of one of CosmJS's clients against a node; exits with 1 at the first surprise.
//
//     node run.js URL CLIENT
//
// The node has to run a kvstore.
"use strict";

const assert = require("node:assert/strict");
const { StargateClient } = require("@cosmjs/stargate");
const { Client, bytes, first, isTakenForOld, rpc, sha256, step, until, url, wanted } = require("./steps");

async function transactions(client) {
  const tx = bytes("cosm=js");
  const committed = await step("broadcastTxCommit", async () => {
    const result = await client.broadcastTxCommit({ tx });
    assert.equal(result.checkTx.code, 0);
    assert.deepEqual(result.hash, sha256(tx));
    assert.ok(result.height > 0);
    return Object.assign(result, { toString: () => `at ${result.height}` });
  });
  await step("broadcastTxCommit again is refused", async () => {
    await assert.rejects(client.broadcastTxCommit({ tx }), /tx already exists in cache/);
  });
  for (const [name, text] of [["broadcastTxSync", "in=sync"], ["broadcastTxAsync", "in=async"]]) {
    await step(name, async () => {
      const result = await client[name]({ tx: bytes(text) });
      assert.deepEqual(result.hash, sha256(bytes(text)));
      if (name === "broadcastTxSync") assert.equal(result.code, 0);
    });
  }
  await step("tx", async () => {
    const found = await client.tx({ hash: sha256(tx), prove: true });
    assert.deepEqual(found.tx, tx);
    assert.equal(found.height, committed.height);
    assert.equal(found.index, 0);
    assert.ok(found.proof.rootHash.length === 32 && found.proof.proof.total > 0);
    const [event] = found.result.events;
    assert.equal(event.type, "app");
    const key = wanted === "Tendermint34Client" ? bytes("creator") : "creator";
    assert.deepEqual(event.attributes[0].key, key);
  });
  await step("tx unknown", async () => {
    await assert.rejects(client.tx({ hash: new Uint8Array(32) }), /not found/);
  });
  return { tx, height: committed.height };
}

async function searches(client, { height }) {
  const page = { query: "tx.height > 0", per_page: 1 };
  await step("txSearch", async () => {
    const found = await client.txSearch({ ...page, page: 1, order_by: "desc" });
    assert.equal(found.txs.length, 1);
    assert.ok(found.totalCount >= 1);
  });
  await step("txSearchAll", async () => {
    const found = await client.txSearchAll(page);
    assert.equal(found.txs.length, found.totalCount);
    assert.ok(found.txs.some((one) => one.height === height));
  });
  await step("txSearch of nothing", async () => {
    const found = await client.txSearch({ query: "no.such = 'thing'" });
    assert.deepEqual([found.totalCount, found.txs.length], [0, 0]);
  });
  const low = { query: "block.height >= 1 AND block.height <= 2", per_page: 1 };
  await step("blockSearch", async () => {
    const found = await client.blockSearch({ ...low, page: 2, order_by: "asc" });
    assert.equal(found.totalCount, 2);
    assert.equal(found.blocks[0].block.header.height, 2);
  });
  await step("blockSearchAll", async () => {
    const found = await client.blockSearchAll(low);
    assert.deepEqual(found.blocks.map((one) => one.block.header.height).sort(), [1, 2]);
  });
}

async function blocks(client, { tx, height }) {
  const block = await step("block", async () => {
    const found = await client.block(height);
    assert.ok(found.block.txs.some((one) => Buffer.from(one).equals(tx)));
    assert.equal(found.block.header.height, height);
    assert.ok(found.block.lastCommit.signatures.length > 0);
    return Object.assign(found, { toString: () => `${found.block.txs.length} txs` });
  });
  await step("block of the latest and of the first height", async () => {
    assert.ok((await client.block()).block.header.height >= height);
    const genesis = await client.block(1);
    assert.equal(genesis.block.header.lastBlockId, null);
  });
  await step("block of the future", async () => {
    await assert.rejects(client.block(1_000_000), /must be less than or equal to/);
  });
  await step("blockResults", async () => {
    const found = await client.blockResults(height);
    assert.equal(found.height, height);
    assert.equal(found.results[0].code, 0);
    assert.equal((await client.blockResults(1)).results.length, 0);
  });
  await step("commit", async () => {
    const found = await client.commit(height);
    assert.deepEqual(found.commit.blockId.hash, block.blockId.hash);
    assert.equal(found.header.height, height);
    assert.ok((await client.commit()).header.height >= height);
  });
  await step("blockchain", async () => {
    const found = await client.blockchain(1, 2);
    assert.deepEqual(found.blockMetas.map((meta) => meta.header.height), [2, 1]);
  });
  await step("validators", async () => {
    const found = await client.validators({ height, page: 1, per_page: 1 });
    assert.equal(found.validators.length, 1);
    assert.equal(found.validators[0].pubkey.algorithm, "ed25519");
  });
  await step("validatorsAll", async () => {
    const found = await client.validatorsAll(height);
    assert.equal(found.validators.length, found.total);
    assert.equal((await client.validatorsAll()).blockHeight > height, true);
  });
}

async function node(client) {
  const status = await step("status", async () => {
    // A companion may be behind its node for a moment.
    const isInStep = async () => !(await client.status()).syncInfo.catchingUp;
    await until(isInStep, "it is in step");
    const found = await client.status();
    assert.ok(found.nodeInfo.network.startsWith("test-chain-"));
    assert.ok(found.syncInfo.latestBlockHeight > 0);
    assert.ok(found.validatorInfo.votingPower > 0n || found.validatorInfo.votingPower > 0);
    return Object.assign(found, { toString: () => found.nodeInfo.version });
  });
  await step("genesis", async () => {
    const found = await client.genesis();
    assert.equal(found.chainId, status.nodeInfo.network);
    assert.equal(found.validators.length, 1);
    assert.ok(found.consensusParams.block.maxBytes > 0);
  });
  await step("health", async () => void (await client.health()));
  await step("numUnconfirmedTxs", async () => {
    assert.equal(typeof (await client.numUnconfirmedTxs()).total, "number");
  });
}

async function application(client) {
  await step("abciInfo", async () => {
    const info = await client.abciInfo();
    assert.ok(info.lastBlockHeight > 0);
    assert.ok(info.lastBlockAppHash.length > 0);
  });
  await step("abciQuery", async () => {
    const found = await client.abciQuery({ path: "/key", data: bytes("cosm"), prove: true });
    assert.deepEqual([found.code, Buffer.from(found.value).toString()], [0, "js"]);
    const nothing = await client.abciQuery({ path: "/key", data: bytes("nosuch") });
    assert.equal(nothing.value.length, 0);
  });
}

/** Streams over a websocket, while another client sends transactions. */
async function subscriptions(client) {
  const streaming = await Client.connect(url.replace("http", "ws"));
  const heights = async (name, height) => {
    const found = await first(streaming[name](), 2);
    assert.deepEqual(found.map(height), [height(found[0]), height(found[0]) + 1]);
  };
  const sending = setInterval(() => {
    client.broadcastTxSync({ tx: bytes(`t${Date.now()}=x`) }).catch(() => {});
  }, 100);
  try {
    await step("subscribeNewBlock", () => heights("subscribeNewBlock", (b) => b.header.height));
    await step("subscribeNewBlockHeader", () =>
      heights("subscribeNewBlockHeader", (header) => header.height));
    await step("subscribeTx", async () => {
      const [one, two] = await first(streaming.subscribeTx(), 2);
      assert.deepEqual(one.hash, sha256(one.tx));
      assert.equal(two.result.code, 0);
    });
    await step("subscribeTx with a query", async () => {
      const [found] = await first(streaming.subscribeTx("app.creator = 'Cosmoshi'"), 1);
      assert.ok(found.height > 0);
    });
    await step("calls over a websocket", async () => {
      assert.ok((await streaming.status()).nodeInfo.version);
      await assert.rejects(streaming.block(1_000_000), /must be less than or equal to/);
    });
  } finally {
    clearInterval(sending);
    streaming.disconnect();
  }
}

async function batches() {
  const transport = new rpc.HttpBatchClient(url, { batchSizeLimit: 10 });
  const client = Client.create ? await Client.create(transport) : null;
  await step("a batch", async () => {
    const found = await Promise.all([
      client.status(), client.block(1), client.block(2), client.health(),
    ]);
    assert.deepEqual([found[1].block.header.height, found[2].block.header.height], [1, 2]);
  });
  await step("a batch of one", async () => assert.ok((await client.status()).nodeInfo));
  client.disconnect();
}

async function stargate({ height }) {
  const client = await StargateClient.create(await Client.connect(url));
  await step("stargate getHeight", async () => assert.ok((await client.getHeight()) >= height));
  await step("stargate getChainId", async () => {
    assert.ok((await client.getChainId()).startsWith("test-chain-"));
  });
  await step("stargate getBlock", async () => {
    const block = await client.getBlock(height);
    assert.deepEqual([block.header.height, block.txs.length > 0], [height, true]);
  });
  await step("stargate searchTx", async () => {
    const found = await client.searchTx([{ key: "app.key", value: "cosm" }]);
    assert.deepEqual([found.length, found[0].height], [1, height]);
    assert.equal(found[0].events[0].type, "app");
  });
  await step("stargate getTx", async () => {
    const id = Buffer.from(sha256(bytes("cosm=js"))).toString("hex").toUpperCase();
    assert.equal((await client.getTx(id)).hash, id);
  });
  client.disconnect();
}

async function main() {
  const chosen = await rpc.connectComet(url);
  await step("connectComet", async () => {
    const { version } = (await chosen.status()).nodeInfo;
    assert.equal(chosen.constructor.name, isTakenForOld(version) ? "Tendermint34Client" : wanted);
    return wanted;
  });
  const client = await Client.connect(url);
  const sent = await transactions(client);
  await node(client);
  await blocks(client, sent);
  await searches(client, sent);
  await application(client);
  await subscriptions(client);
  await batches();
  await stargate(sent);
}

main().then(() => process.exit(0));
