// Tests with node:test and viem, of contracts that suite.js tests with ethers.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { network } from "hardhat";
import { encodeFunctionData, getAddress, getContractAddress, hashTypedData, parseEther, parseGwei, recoverAddress, verifyMessage } from "viem";

const { networkHelpers, viem } = await network.create("noderpc");
const { loadFixture, time } = networkHelpers;
const client = await viem.getPublicClient();
const control = await viem.getTestClient();
const [owner, alice] = await viem.getWalletClients();
const NOBODY = getAddress(`0x${"77".repeat(20)}`);
const YEAR = 365n * 24n * 3600n;

const receipt = async (sent) => client.waitForTransactionReceipt({ hash: await sent });

async function world() {
  const opens = BigInt(await time.latest()) + YEAR;
  return {
    token: await viem.deployContract("Token", [1000n]),
    faults: await viem.deployContract("Faults"),
    probe: await viem.deployContract("Probe"),
    vault: await viem.deployContract("Vault", [opens], { value: parseEther("1") }),
    opens,
  };
}

const inWorld = (title, test) => it(title, async () => test(await loadFixture(world)));

describe("contracts with viem", () => {
  inWorld("are read", async ({ token }) => {
    assert.equal(await token.read.symbol(), "TOK");
    assert.equal(await token.read.balanceOf([owner.account.address]), 1000n);
  });
  inWorld("are read several at once", async ({ token, vault, opens }) => {
    assert.deepEqual(await Promise.all([token.read.totalSupply(), vault.read.opens()]), [1000n, opens]);
  });
  inWorld("emit events with arguments", async ({ token }) => {
    const args = [getAddress(owner.account.address), getAddress(alice.account.address), 5n];
    await viem.assertions.emitWithArgs(token.write.transfer([alice.account.address, 5n]), token, "Transfer", args);
  });
  inWorld("emit events", async ({ token }) => {
    await viem.assertions.emit(token.write.approve([NOBODY, 5n]), token, "Approval");
  });
  inWorld("revert", async ({ faults }) => {
    await viem.assertions.revert(faults.read.plain());
  });
  inWorld("revert with a reason", async ({ faults }) => {
    await viem.assertions.revertWith(faults.read.reason(), "a reason");
  });
  inWorld("revert with a reason when they are written", async ({ vault }) => {
    await viem.assertions.revertWith(vault.write.pay([NOBODY, 1n], { account: alice.account }), "not the owner");
  });
  inWorld("revert with an error", async ({ faults }) => {
    await viem.assertions.revertWithCustomError(faults.read.empty(), faults, "Empty");
  });
  inWorld("revert with an error and arguments", async ({ token }) => {
    const from = getAddress(alice.account.address);
    await viem.assertions.revertWithCustomErrorWithArgs(
      token.write.transfer([NOBODY, 1n], { account: alice.account }), token, "InsufficientBalance", [from, 0n, 1n],
    );
  });
  inWorld("change balances", async ({ vault }) => {
    await viem.assertions.balancesHaveChanged(vault.write.pay([NOBODY, 7n]), [
      { address: vault.address, amount: -7n },
      { address: NOBODY, amount: 7n },
    ]);
  });
  inWorld("are simulated", async ({ token }) => {
    const { result, request } = await client.simulateContract({
      ...token, functionName: "transfer", args: [NOBODY, 3n], account: owner.account,
    });
    assert.equal(result, true);
    await receipt(owner.writeContract(request));
    assert.equal(await token.read.balanceOf([NOBODY]), 3n);
  });
  inWorld("are found by their events", async ({ token }) => {
    await receipt(token.write.transfer([NOBODY, 3n]));
    await receipt(token.write.transfer([alice.account.address, 4n]));
    const found = await token.getEvents.Transfer({ to: NOBODY }, { fromBlock: 0n });
    assert.deepEqual(found.map(({ args }) => args.value), [3n]);
  });
  inWorld("are watched", async ({ token }) => {
    const heard = Promise.withResolvers();
    const stop = client.watchContractEvent({
      ...token, eventName: "Transfer", pollingInterval: 50, onError: heard.reject,
      fromBlock: await client.getBlockNumber(), onLogs: ([{ args }]) => heard.resolve(args.value),
    });
    await receipt(token.write.transfer([NOBODY, 9n]));
    assert.equal(await heard.promise, 9n);
    stop();
  });
  inWorld("estimate gas", async ({ token }) => {
    const gas = await token.estimateGas.transfer([NOBODY, 3n], { account: owner.account });
    const { gasUsed } = await receipt(token.write.transfer([NOBODY, 3n]));
    assert.ok(gas >= gasUsed);
  });
  it("link libraries", async () => {
    const { address } = await viem.deployContract("Statistics");
    const linked = await viem.deployContract("Linked", [], { libraries: { Statistics: address } });
    assert.deepEqual(await linked.read.summary([[3n, 9n]]), { sum: 12n, most: 9n });
  });
  it("are deployed without a wait", async () => {
    const { contract, deploymentTransaction } = await viem.sendDeploymentTransaction("Token", [4n]);
    await receipt(deploymentTransaction.hash);
    const { nonce } = deploymentTransaction;
    assert.equal(getAddress(contract.address), getContractAddress({ from: owner.account.address, nonce: BigInt(nonce) }));
  });
  inWorld("log to the console", async ({ probe }) => {
    assert.equal((await receipt(probe.write.log(["logged", 4n]))).status, "success");
  });
});

describe("the chain with viem", () => {
  it("signs messages", async () => {
    const signature = await alice.signMessage({ message: "hello" });
    assert.ok(await verifyMessage({ address: alice.account.address, message: "hello", signature }));
  });
  it("signs typed data", async () => {
    const typed = {
      domain: { name: "Mail" }, types: { Mail: [{ name: "text", type: "string" }] },
      primaryType: "Mail", message: { text: "hello" },
    };
    const signature = await alice.signTypedData(typed);
    const signer = await recoverAddress({ hash: hashTypedData(typed), signature });
    assert.equal(signer, getAddress(alice.account.address));
  });
  inWorld("moves its clock", async ({ vault, opens }) => {
    await vault.write.deposit({ value: 5n, account: alice.account });
    await time.increaseTo(opens);
    await viem.assertions.emit(vault.write.withdraw({ account: alice.account }), vault, "Withdrawn");
  });
  inWorld("takes snapshots", async ({ token }) => {
    const id = await control.snapshot();
    await receipt(token.write.transfer([NOBODY, 3n]));
    await control.revert({ id });
    assert.equal(await token.read.balanceOf([NOBODY]), 0n);
  });
  inWorld("impersonates accounts", async ({ token, vault }) => {
    await control.impersonateAccount({ address: vault.address });
    await control.setBalance({ address: vault.address, value: parseEther("1") });
    const data = encodeFunctionData({ abi: token.abi, functionName: "approve", args: [NOBODY, 8n] });
    const wallet = await viem.getWalletClient(vault.address);
    await receipt(wallet.sendTransaction({ to: token.address, data }));
    await control.stopImpersonatingAccount({ address: vault.address });
    assert.equal(await token.read.allowance([vault.address, NOBODY]), 8n);
  });
  inWorld("sets a base fee", async () => {
    await networkHelpers.setNextBlockBaseFeePerGas(parseGwei("7"));
    const { blockNumber } = await receipt(owner.sendTransaction({ to: NOBODY, value: 1n }));
    assert.equal((await client.getBlock({ blockNumber })).baseFeePerGas, parseGwei("7"));
  });
  inWorld("keeps transactions until they are mined", async () => {
    await control.setAutomine(false);
    try {
      const hash = await owner.sendTransaction({ to: NOBODY, value: 3n });
      assert.equal((await client.getBlock({ blockTag: "pending" })).transactions.includes(hash), true);
      await control.mine({ blocks: 1 });
      assert.equal((await client.getTransactionReceipt({ hash })).status, "success");
    } finally {
      await control.setAutomine(true);
    }
  });
  inWorld("drops transactions", async () => {
    await control.setAutomine(false);
    try {
      const hash = await owner.sendTransaction({ to: NOBODY, value: 3n });
      await control.dropTransaction({ hash });
      await control.mine({ blocks: 1 });
      await assert.rejects(client.getTransaction({ hash }), { name: "TransactionNotFoundError" });
    } finally {
      await control.setAutomine(true);
    }
  });
  inWorld("proves storage", async ({ token }) => {
    const proof = await client.getProof({ address: token.address, storageKeys: [`0x${"0".repeat(64)}`] });
    assert.equal(proof.storageProof[0].value, 1000n);
  });
});
