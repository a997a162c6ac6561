// What CosmJS's own specs expect of a node to which nobody sends anything: that it makes blocks,
// tells of them, and has the first few when it is asked for them.
//
//     node idle.js URL CLIENT
"use strict";

const assert = require("node:assert/strict");
const { Client, first, isTakenForOld, rpc, step, until, url, wanted } = require("./steps");

const heightOf = async (client) => (await client.status()).syncInfo.latestBlockHeight;

async function firstBlocks(client) {
  await step("the first answers have a block", async () => {
    assert.ok((await heightOf(client)) >= 1);
    assert.equal((await client.block(1)).block.header.height, 1);
    assert.equal((await client.status()).syncInfo.catchingUp, false);
  });
  await step("blocks come by themselves", () =>
    until(async () => (await heightOf(client)) >= 5, "five blocks"));
  await step("a commit among the first blocks", async () => {
    const [signature] = (await client.commit(4)).commit.signatures;
    assert.equal(signature.blockIdFlag, 2);
    assert.deepEqual([signature.validatorAddress.length, signature.signature.length], [20, 64]);
  });
  await step("results of an empty block", async () => {
    const found = await client.blockResults(3);
    assert.deepEqual([found.height, found.results], [3, []]);
    const events = found.finalizeBlockEvents ?? [...found.beginBlockEvents, ...found.endBlockEvents];
    assert.deepEqual(events, []);
  });
}

async function lists(client) {
  await step("blockchain from the latest down", async () => {
    const { blockMetas, lastHeight } = await client.blockchain();
    assert.ok(blockMetas.length >= 3);
    const heights = blockMetas.slice(0, 3).map((meta) => meta.header.height);
    assert.deepEqual(heights, [lastHeight, lastHeight - 1, lastHeight - 2]);
  });
  await step("blockchain between two heights, and beyond the latest", async () => {
    const heights = async (low, high) =>
      (await client.blockchain(low, high)).blockMetas.map((meta) => meta.header.height);
    assert.deepEqual(await heights(2, 3), [3, 2]);
    assert.ok((await heights(undefined, 1_000_000)).length >= 3);
  });
  await step("blockSearch in pages", async () => {
    const query = "block.height >= 1 AND block.height <= 3";
    const sizes = [];
    for (const page of [1, 2]) {
      const found = await client.blockSearch({ query, page, per_page: 2 });
      assert.equal(found.totalCount, 3);
      sizes.push(found.blocks.length);
    }
    assert.deepEqual(sizes, [2, 1]);
    const { blocks } = await client.blockSearchAll({ query, per_page: 2 });
    assert.deepEqual(blocks.map((one) => one.block.header.height), [1, 2, 3]);
  });
}

async function subscriptions() {
  const client = await Client.connect(url.replace("http", "ws"));
  await step("headers of empty blocks", async () => {
    const began = Date.now();
    const [one, two] = await first(client.subscribeNewBlockHeader(), 2);
    assert.equal(two.height, one.height + 1);
    assert.ok(one.time.getTime() > began - 2_000 && two.time > one.time);
    assert.ok(two.time.getTime() <= Date.now() + 10);
    assert.deepEqual(two.appHash, one.appHash);
    assert.notDeepEqual(two.lastCommitHash, one.lastCommitHash);
  });
  await step("a stream that is left and joined again", async () => {
    const stream = client.subscribeNewBlockHeader();
    const [before] = await first(stream, 1);
    const [after] = await first(stream, 1);
    assert.ok(after.height > before.height);
  });
  await step("two streams of one query", async () => {
    const streams = [client.subscribeNewBlockHeader(), client.subscribeNewBlockHeader()];
    const found = await Promise.all(streams.map((stream) => first(stream, 2)));
    assert.deepEqual(found.map((events) => events.length), [2, 2]);
  });
  await step("calls beside a stream", async () => {
    const events = first(client.subscribeNewBlock(), 2);
    await Promise.all([client.status(), client.block(), client.health()]);
    assert.equal((await events).length, 2);
  });
  await step("a stream ends with its connection", async () => {
    const ended = new Promise((complete, error) =>
      client.subscribeNewBlock().subscribe({ next: () => client.disconnect(), complete, error }));
    await ended;
  });
}

async function batches() {
  const transport = new rpc.HttpBatchClient(url, { batchSizeLimit: 2, dispatchInterval: 100 });
  const client = await Client.create(transport);
  await step("batches that are full at once", async () => {
    const found = await Promise.all([client.status(), client.status(), client.health()]);
    assert.deepEqual(found.map((one) => one === null), [false, false, true]);
  });
  client.disconnect();
}

async function main() {
  const chosen = await rpc.connectComet(url);
  const { version } = (await chosen.status()).nodeInfo;
  const client = isTakenForOld(version) ? await Client.connect(url) : chosen;
  await step("connectComet", async () => assert.equal(client.constructor.name, wanted));
  await firstBlocks(client);
  await lists(client);
  await subscriptions();
  await batches();
}

main().then(() => process.exit(0));
