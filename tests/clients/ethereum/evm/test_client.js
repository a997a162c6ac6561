// viem's test client drives the chain: node test_client.js URL MODE
"use strict";

const viem = require("viem");
const { step, thrown } = require("./helpers");

const [url, mode] = process.argv.slice(2);
const FIRST = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const NOBODY = "0x" + "98".repeat(20);
const SLOT = viem.pad("0x1");
const WORD = viem.pad("0x2a");
const chain = viem.defineChain({
  id: 31337,
  name: "node",
  nativeCurrency: { name: "ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const client = viem
  .createTestClient({ chain, mode, transport: viem.http(url), pollingInterval: 50, cacheTime: 0 })
  .extend(viem.publicActions)
  .extend(viem.walletActions);

const height = () => client.getBlockNumber({ cacheTime: 0 });
const time = async () => (await client.getBlock()).timestamp;
const send = () => client.sendTransaction({ account: FIRST, to: NOBODY, value: 1n });
const waiting = async () => {
  const { pending } = await client.getTxpoolContent();
  return Object.values(pending).map(Object.values).flat().length;
};

async function main() {
  await client.setAutomine(false);
  await step("automine", () => client.getAutomine());
  await client.mine({ blocks: 1 });
  await step("mine", async () => {
    const before = await height();
    await client.mine({ blocks: 2 });
    return (await height()) - before;
  });
  await step("mine at intervals", async () => {
    const before = await time();
    await client.mine({ blocks: 3, interval: 60 });
    return (await time()) - before >= 120n;
  });
  await step("increaseTime", async () => {
    const before = await time();
    await client.increaseTime({ seconds: 5000 });
    await client.mine({ blocks: 1 });
    return (await time()) - before >= 5000n;
  });
  await step("setNextBlockTimestamp", async () => {
    const wanted = (await time()) + 777n;
    await client.setNextBlockTimestamp({ timestamp: wanted });
    await client.mine({ blocks: 1 });
    return (await time()) === wanted;
  });

  await client.setBalance({ address: NOBODY, value: viem.parseEther("3") });
  await client.setNonce({ address: NOBODY, nonce: 9 });
  await step("setBalance", () => client.getBalance({ address: NOBODY }));
  await step("setNonce", () => client.getTransactionCount({ address: NOBODY }));
  await step("snapshot and revert", async () => {
    const before = await height();
    const id = await client.snapshot();
    await client.setCode({ address: NOBODY, bytecode: "0x602a60005260206000f3" });
    await client.setStorageAt({ address: NOBODY, index: SLOT, value: WORD });
    const { data } = await client.call({ to: NOBODY });
    const slot = await client.getStorageAt({ address: NOBODY, slot: SLOT });
    await client.revert({ id });
    const gone = (await client.getCode({ address: NOBODY })) === undefined;
    return [BigInt(data), BigInt(slot), gone, (await height()) === before];
  });

  await step("impersonateAccount", async () => {
    const request = { account: NOBODY, to: FIRST, value: 1n };
    const refused = await thrown(() => client.sendTransaction(request));
    await client.impersonateAccount({ address: NOBODY });
    const hash = await client.sendTransaction(request);
    await client.mine({ blocks: 1 });
    const { from, status } = await client.getTransactionReceipt({ hash });
    await client.stopImpersonatingAccount({ address: NOBODY });
    return [refused.details, from, status];
  });
  await step("dropTransaction", async () => {
    const sent = [await send(), await send()];
    const before = await waiting();
    await client.dropTransaction({ hash: sent[1] });
    const after = await waiting();
    await client.mine({ blocks: 1 });
    const { status } = await client.getTransactionReceipt({ hash: sent[0] });
    return [before, after, await waiting(), status];
  });
  await step("setAutomine", async () => {
    await client.setAutomine(true);
    const hash = await send();
    return [await client.getAutomine(), (await client.getTransactionReceipt({ hash })).status];
  });
  await step("setIntervalMining", async () => {
    const before = await height();
    await client.setIntervalMining({ interval: 1 });
    const seen = await new Promise((resolve) =>
      client.watchBlockNumber({ onBlockNumber: (number) => number > before && resolve(true) }),
    );
    await client.setIntervalMining({ interval: 0 });
    return [seen, await client.getAutomine()];
  });
  await step("setBlockGasLimit", async () => {
    await client.setBlockGasLimit({ gasLimit: 20_000_000n });
    await client.mine({ blocks: 1 });
    return (await client.getBlock()).gasLimit;
  });
  await step("setNextBlockBaseFeePerGas", async () => {
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 2_000_000_001n });
    await client.mine({ blocks: 1 });
    return (await client.getBlock()).baseFeePerGas;
  });
  await step("setCoinbase", async () => {
    await client.setCoinbase({ address: NOBODY });
    await client.mine({ blocks: 1 });
    return (await client.getBlock()).miner;
  });
  await step("reset", async () => {
    await client.request({ method: `${mode}_reset`, params: [] });
    return [await height(), await client.getBalance({ address: NOBODY })];
  });
  await client.setAutomine(true);
  process.exit(0);
}

main();
