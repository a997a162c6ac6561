// viem and ethers with the accounts of a development chain: node dev.js URL
"use strict";

const { ethers } = require("ethers");
const viem = require("viem");
const { privateKeyToAccount } = require("viem/accounts");
const { url, step, awaited } = require("./helpers");

const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const NAME = "0x" + "77".repeat(20);
const DOMAIN = { name: "Ether Mail", chainId: 31337 };
const TYPES = { Mail: [{ name: "contents", type: "string" }, { name: "n", type: "uint256[]" }] };
const MAIL = { contents: "hi", n: [1n, 2n] };

const chain = viem.defineChain({
  id: 31337,
  name: "node",
  nativeCurrency: { name: "ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const options = { chain, transport: viem.http(url), pollingInterval: 100, cacheTime: 0 };
const reads = viem.createPublicClient(options);
const wallet = viem.createWalletClient(options);
const test = viem.createTestClient({ ...options, mode: "anvil" });
const local = privateKeyToAccount(KEY);

async function status(hash) {
  return (await reads.waitForTransactionReceipt({ hash })).status;
}

async function withEthers(to) {
  const provider = new ethers.JsonRpcProvider(url, undefined, { cacheTimeout: -1 });
  provider.pollingInterval = 100;
  const signer = await provider.getSigner(0);
  await step("ethers sends", async () => {
    const sent = await signer.sendTransaction({ to, value: 1n });
    return (await sent.wait()).status;
  });
  await step("ethers signs", async () => {
    const signature = await signer.signTypedData(DOMAIN, TYPES, MAIL);
    return ethers.verifyTypedData(DOMAIN, TYPES, MAIL, signature) === signer.address;
  });
  await step("ethers signs a message", async () =>
    ethers.verifyMessage("hi", await signer.signMessage("hi")) === signer.address);
  await step("ethers delegates", async () => {
    const own = new ethers.Wallet(KEY, provider);
    const nonce = (await own.getNonce()) + 1;
    const authorization = await own.authorize({ address: NAME, nonce });
    const sent = await own.sendTransaction({ type: 4, to, authorizationList: [authorization] });
    return (await sent.wait()).status;
  });
  await step("ethers hears of what is mined at once", async () => {
    const heard = new Set(), sent = [], all = awaited("transactions");
    await provider.on("pending", (hash) => {
      heard.add(hash);
      if (sent.length === 3 && sent.every((own) => heard.has(own))) all.resolve(true);
    });
    // ethers makes its filter behind the back of `on`; what it polls for next comes after that.
    await provider.send("eth_chainId", []);
    for (const value of [1n, 2n, 3n]) {
      const tx = await signer.sendTransaction({ to, value });
      sent.push(tx.hash);
      await tx.wait();
    }
    if (sent.every((own) => heard.has(own))) all.resolve(true);
    return all.promise;
  });
  provider.destroy();
}

async function main() {
  const [account, to] = await wallet.getAddresses();
  await step("viem sends", async () =>
    status(await wallet.sendTransaction({ account, to, value: 1n })));
  // It has eth_fillTransaction fill in what is left open, and signs by itself.
  await step("viem fills in", async () =>
    status(await wallet.sendTransaction({ account: local, to, value: 1n })));
  await step("viem signs", async () => {
    const typed = { domain: DOMAIN, types: TYPES, primaryType: "Mail", message: MAIL };
    const signature = await wallet.signTypedData({ account, ...typed });
    return signature === (await local.signTypedData(typed));
  });
  await step("viem signs a message", async () =>
    (await wallet.signMessage({ account, message: "hi" })) ===
      (await local.signMessage({ message: "hi" })));
  await step("viem requests accounts", async () => (await wallet.requestAddresses()).length);
  await step("viem delegates", async () => {
    const authorization = await wallet.signAuthorization({
      account: local, contractAddress: NAME, executor: "self" });
    const authorizationList = [authorization];
    return status(await wallet.sendTransaction({ account: local, to, authorizationList }));
  });
  await step("viem impersonates", async () => {
    await status(await wallet.sendTransaction({ account, to: NAME, value: 10n ** 18n }));
    await test.impersonateAccount({ address: NAME });
    return status(await wallet.sendTransaction({ account: NAME, to, value: 1n }));
  });
  await withEthers(to);
}

main().then(() => process.exit(0));
