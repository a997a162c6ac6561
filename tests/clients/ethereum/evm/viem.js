// viem over HTTP or a websocket; see helpers.js.
"use strict";

const viem = require("viem");
const { nonceManager, privateKeyToAccount } = require("viem/accounts");
const helpers = require("./helpers");
const { url, account, key, abi, bytecode, step, added, thrown } = helpers;

const chain = viem.defineChain({
  id: 31337,
  name: "node",
  nativeCurrency: { name: "ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const client = viem
  .createWalletClient({
    account: key ? privateKeyToAccount(key, { nonceManager }) : account,
    chain,
    transport: url.startsWith("ws") ? viem.webSocket(url) : viem.http(url),
    pollingInterval: 50,
    cacheTime: 0,
  })
  .extend(viem.publicActions);

const shown = ({ args }) => added(args.by, args.amount, args.total);
const code = (receipt) => (receipt.status === "success" ? 1 : 0);
const done = (hash) => client.waitForTransactionReceipt({ hash, timeout: 100_000 });
const cause = (error) => error.walk((e) => e instanceof viem.ContractFunctionRevertedError);

async function main() {
  await step("chain id", () => client.getChainId());
  const deployed = await done(
    await client.deployContract({ abi, bytecode, args: [helpers.FIRST] }),
  );
  await step("deployed", () => ({ status: code(deployed) }));
  const address = deployed.contractAddress;
  const contract = viem.getContract({ abi, address, client });
  // Calls that fail are simulated as its own sender.
  const simulated = (name, amount) => contract.simulate[name]([amount]);

  const receipt = await done(await contract.write.add([5n]));
  await step("sent", () => ({
    status: code(receipt),
    events: viem.parseEventLogs({ abi, logs: receipt.logs }).map(shown),
  }));
  await step("logs", async () =>
    (await contract.getEvents.Added({ by: account, amount: 5n }, { fromBlock: 0n })).map(shown),
  );
  await step("raw logs", async () =>
    (await client.getLogs({ address, fromBlock: 0n, event: abi.find((e) => e.name === "Added") }))
      .length,
  );
  await step("called", async () => [
    await contract.read.total(),
    await contract.read.plus([3n]),
  ]);
  await step("estimated", async () => {
    const gas = await contract.estimateGas.add([5n]);
    return gas >= 21000n && gas <= receipt.gasUsed;
  });

  await step("reason", async () => cause(await thrown(() => simulated("add", 0n))).reason);
  await step("reason of an estimate", async () =>
    cause(await thrown(() => contract.estimateGas.add([0n]))).reason,
  );
  await step("custom error", async () => {
    const { data } = cause(await thrown(() => simulated("add", 2000n)));
    return helpers.failure(data.errorName, data.args);
  });
  await step("panic", async () => {
    const { data } = cause(await thrown(() => simulated("take", 1000000n)));
    return data.args[0];
  });
  await step("failed", async () =>
    code(await done(await contract.write.take([1000000n], { gas: 100000n }))),
  );

  await step("quick sends", async () => {
    const first = await client.getTransactionCount({ address: account });
    const request = { to: helpers.NOBODY, value: 1n };
    const sent = await Promise.all(helpers.QUICK.map(() => client.sendTransaction(request)));
    const receipts = await Promise.all(sent.map(done));
    const txs = await Promise.all(sent.map((hash) => client.getTransaction({ hash })));
    return [helpers.consecutive(txs.map((tx) => tx.nonce), first), ...receipts.map(code)];
  });
  await step("fees", async () => {
    const { maxFeePerGas, maxPriorityFeePerGas } = await client.estimateFeesPerGas();
    const { baseFeePerGas } = await client.getBlock();
    return maxFeePerGas >= baseFeePerGas && maxPriorityFeePerGas > 0n;
  });
  await step("state", async () => {
    const proof = await client.getProof({ address, storageKeys: [viem.pad("0x0")] });
    return {
      slot: BigInt(await client.getStorageAt({ address, slot: "0x0" })),
      code: (await client.getCode({ address })).length > 2,
      nonce: await client.getTransactionCount({ address }),
      balance: await client.getBalance({ address }),
      proved: proof.storageProof[0].value,
    };
  });
  await followed(contract);
  process.exit(0);
}

async function followed(contract) {
  const head = helpers.awaited("head"), found = helpers.awaited("event");
  const last = await client.getBlockNumber();
  client.watchBlockNumber({
    onBlockNumber: (number) => number > last && head.resolve(true),
    onError: head.reject,
  });
  contract.watchEvent.Added(
    {},
    { onLogs: ([log]) => found.resolve(shown(log)), onError: found.reject },
  );
  // It starts them without telling when they have begun; answers come in order.
  await client.getBlockNumber();
  await done(await contract.write.add([1n]));
  await step("told of", async () => ({ head: await head.promise, event: await found.promise }));
}

main();
