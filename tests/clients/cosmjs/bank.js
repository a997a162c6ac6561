// SigningStargateClient and StargateClient against a chain of the Cosmos SDK.
//
//     node bank.js URL send MNEMONIC MNEMONIC    # transactions, of which some fail
//     node bank.js URL read MNEMONIC MNEMONIC    # prints what it reads of all of them
//
// The chain is that of tests/clients/sdk, with the accounts of these mnemonics. What is read is
// the same of every node of the chain, as long as nobody sends more.
"use strict";

const assert = require("node:assert/strict");
const { fromBech32, toBech32 } = require("@cosmjs/encoding");
const { DirectSecp256k1HdWallet } = require("@cosmjs/proto-signing");
const stargate = require("@cosmjs/stargate");
const { connectComet } = require("@cosmjs/tendermint-rpc");
const bank = require("cosmjs-types/cosmos/bank/v1beta1/query");
const { TxRaw } = require("cosmjs-types/cosmos/tx/v1beta1/tx");
const { step } = require("./steps");

const [url, task, ...mnemonics] = process.argv.slice(2);
const [STRANGER, NOBODY] = [1, 2].map((byte) => toBech32("cosmos", new Uint8Array(20).fill(byte)));
const FEE = { amount: stargate.coins(5000, "stake"), gas: "200000" };
const RICHES = "1000000000000000000000000000000";

/** The accounts of the mnemonics: their wallets and addresses. */
function accounts() {
  return Promise.all(mnemonics.map(async (words) => {
    const wallet = await DirectSecp256k1HdWallet.fromMnemonic(words);
    const [{ address }] = await wallet.getAccounts();
    return { wallet, address };
  }));
}

function signing(wallet) {
  return stargate.SigningStargateClient.connectWithSigner(url, wallet, {
    gasPrice: stargate.GasPrice.fromString("0.025stake"),
    broadcastPollIntervalMs: 100,
  });
}

async function send() {
  const [alice, bob] = await accounts();
  const client = await signing(alice.wallet);
  const to = async (recipient, amount, denom, fee = "auto", memo = "") => {
    const coins = stargate.coins(amount, denom);
    return client.sendTokens(alice.address, recipient, coins, fee, memo);
  };
  await step("send, simulated before", async () => {
    stargate.assertIsDeliverTxSuccess(await to(bob.address, 1000, "token", "auto", "héllo & <you>"));
  });
  await step("send to an account that there is not", async () => {
    stargate.assertIsDeliverTxSuccess(await to(STRANGER, 7, "token"));
  });
  await step("send more than there is", async () => {
    const sent = await to(bob.address, RICHES, "token", FEE);
    assert.equal(sent.code, 5);
    assert.match((await client.getTx(sent.transactionHash)).rawLog, /insufficient funds/);
  });
  await step("simulate what fails", async () => {
    await assert.rejects(to(bob.address, RICHES, "token"), /insufficient funds/);
  });
  await step("a sequence of the future is refused", async () => {
    const { accountNumber } = await client.getSequence(alice.address);
    const signer = { accountNumber, sequence: 99, chainId: await client.getChainId() };
    const message = transfer(alice.address, bob.address, 1);
    const raw = await client.sign(alice.address, [message], FEE, "", signer);
    const tx = TxRaw.encode(raw).finish();
    await assert.rejects(client.broadcastTx(tx), (error) => error.code === 32);
  });
  await step("multi-send", () => multiSend(client, alice.address, [bob.address, STRANGER]));
  await step("delegate", () => delegate(client, alice.address));
  await step("two messages in one", async () => {
    const both = [2, 3].map((amount) => transfer(alice.address, bob.address, amount));
    stargate.assertIsDeliverTxSuccess(await client.signAndBroadcast(alice.address, both, "auto"));
  });
  const others = await signing(bob.wallet);
  await step("send back", async () => {
    const coins = stargate.coins(400, "token");
    const sent = await others.sendTokens(bob.address, alice.address, coins, FEE);
    stargate.assertIsDeliverTxSuccess(sent);
  });
}

function transfer(fromAddress, toAddress, amount) {
  const value = { fromAddress, toAddress, amount: stargate.coins(amount, "token") };
  return { typeUrl: "/cosmos.bank.v1beta1.MsgSend", value };
}

async function multiSend(client, from, recipients) {
  const each = stargate.coins(20, "token");
  const value = {
    inputs: [{ address: from, coins: stargate.coins(20 * recipients.length, "token") }],
    outputs: recipients.map((address) => ({ address, coins: each })),
  };
  const message = { typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend", value };
  stargate.assertIsDeliverTxSuccess(await client.signAndBroadcast(from, [message], "auto"));
}

async function delegate(client, from) {
  const amount = stargate.coin(3_000_000, "stake");
  const sent = await client.delegateTokens(from, validatorOf(from), amount, "auto");
  stargate.assertIsDeliverTxSuccess(sent);
}

/** The validator's operator is the first account. */
function validatorOf(address) {
  return toBech32("cosmosvaloper", fromBech32(address, 90).data);
}

async function read() {
  const known = (await accounts()).map((one) => one.address);
  const comet = await connectComet(url);
  const client = await stargate.StargateClient.create(comet);
  const service = stargate.QueryClient.withExtensions(comet, stargate.setupTxExtension);
  await step("chain id", () => client.getChainId());
  for (const address of [...known, STRANGER]) {
    await step(`account ${address}`, async () => json({
      account: await client.getAccount(address),
      balances: await client.getAllBalances(address),
      token: await client.getBalance(address, "token"),
      delegated: await client.getDelegation(address, validatorOf(known[0])),
      staked: await client.getBalanceStaked(address),
    }));
  }
  await step("an account that there is not", async () => {
    assert.equal(await client.getAccount(NOBODY), null);
  });
  const found = new Map();
  for (const query of queries(known)) {
    await step(`search ${JSON.stringify(query)}`, async () => {
      const hits = await client.searchTx(query);
      hits.forEach((hit) => found.set(hit.hash, hit));
      return json(hits.map(({ height, txIndex, hash }) => [height, txIndex, hash]));
    });
  }
  for (const [hash, hit] of found) {
    await step(`transaction ${hash}`, async () => {
      const one = await client.getTx(hash);
      assert.deepEqual(one, hit);
      const block = await client.getBlock(one.height);
      assert.deepEqual(block.txs[one.txIndex], one.tx);
      const { txResponse } = await service.tx.getTx(hash);
      assert.deepEqual([txResponse.code, txResponse.rawLog], [one.code, one.rawLog]);
      const before = await balanceAt(service, known[1], one.height - 1);
      return json({ one, block, txResponse, before });
    });
  }
}

/** A past state, which its node has. */
async function balanceAt(service, address, height) {
  const request = bank.QueryBalanceRequest.encode({ address, denom: "token" }).finish();
  const path = "/cosmos.bank.v1beta1.Query/Balance";
  const answer = await service.queryAbci(path, request, height);
  assert.equal(answer.height, height);
  return bank.QueryBalanceResponse.decode(answer.value).balance;
}

function queries([alice, bob]) {
  return [
    `transfer.recipient='${bob}'`,
    `transfer.recipient='${STRANGER}'`,
    `message.sender='${alice}' AND tx.height>1`,
    [{ key: "message.sender", value: bob }],
    [{ key: "message.action", value: "/cosmos.bank.v1beta1.MsgSend" },
      { key: "message.sender", value: alice }],
    "message.action='/cosmos.staking.v1beta1.MsgDelegate'",
    "tx.height>0",
  ];
}

function json(value) {
  return JSON.stringify(value, (_, one) => {
    if (typeof one === "bigint") return `${one}`;
    return one instanceof Uint8Array ? Buffer.from(one).toString("hex") : one;
  });
}

const work = { send, read }[task];
work().then(() => process.exit(0));
