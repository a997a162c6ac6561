// What a wallet does with CosmJS's SigningStargateClient, against the application bank.
//
//     node send.js URL MNEMONIC
//
// The mnemonic is that of the ten accounts of a development chain.
"use strict";

const assert = require("node:assert/strict");
const amino = require("@cosmjs/amino");
const { toBech32 } = require("@cosmjs/encoding");
const { DirectSecp256k1HdWallet, encodePubkey } = require("@cosmjs/proto-signing");
const stargate = require("@cosmjs/stargate");
const { MultiSignature } = require("cosmjs-types/cosmos/crypto/multisig/v1beta1/multisig");
const { SignMode } = require("cosmjs-types/cosmos/tx/signing/v1beta1/signing");
const { AuthInfo, TxRaw } = require("cosmjs-types/cosmos/tx/v1beta1/tx");
const { step } = require("./steps");

const [url, mnemonic] = process.argv.slice(2);
const FEE = { amount: stargate.coins(5000, "stake"), gas: "200000" };
const STRANGER = toBech32("cosmos", new Uint8Array(20).fill(1));
const NOBODY = toBech32("cosmos", new Uint8Array(20).fill(2));
const hdPaths = [0, 1, 2].map(amino.makeCosmoshubPath);
const options = { gasPrice: stargate.GasPrice.fromString("0.025stake"), broadcastPollIntervalMs: 10 };
const ok = stargate.assertIsDeliverTxSuccess;

async function signing(kind) {
  const wallet = await kind.fromMnemonic(mnemonic, { hdPaths });
  const accounts = await wallet.getAccounts();
  const client = await stargate.SigningStargateClient.connectWithSigner(url, wallet, options);
  return { accounts, client, wallet };
}

function transfer(fromAddress, toAddress, amount, denom = "token") {
  const value = { fromAddress, toAddress, amount: stargate.coins(amount, denom) };
  return { typeUrl: "/cosmos.bank.v1beta1.MsgSend", value };
}

async function direct() {
  const { accounts: [alice, bob], client } = await signing(DirectSecp256k1HdWallet);
  const coins = stargate.coins(1000, "token");
  await step("connect", () => client.getChainId());
  await step("balances", async () => {
    assert.equal((await client.getAllBalances(alice.address)).length, 2);
    assert.equal(await client.getAccount(NOBODY), null);
  });
  await step("send at a fixed fee", async () => {
    const sent = await client.sendTokens(alice.address, bob.address, coins, FEE, "héllo & <you>");
    ok(sent);
    const found = await client.getTx(sent.transactionHash);
    assert.deepEqual([found.code, found.rawLog, found.gasWanted], [0, "", 200000n]);
    assert.equal(found.msgResponses[0].typeUrl, "/cosmos.bank.v1beta1.MsgSendResponse");
  });
  await step("send at a simulated fee", async () => {
    const message = transfer(alice.address, STRANGER, 7);
    const gas = await client.simulate(alice.address, [message], "");
    const sent = await client.sendTokens(
      alice.address, STRANGER, stargate.coins(7, "token"), "auto");
    ok(sent);
    // No fee is paid in a simulation.
    assert.ok(gas < sent.gasUsed && sent.gasUsed < gas * 1.4, `${gas} for ${sent.gasUsed}`);
    assert.equal((await client.getBalance(STRANGER, "token")).amount, "7");
  });
  await step("send to many", async () => {
    const each = stargate.coins(20, "token");
    const value = {
      inputs: [{ address: alice.address, coins: stargate.coins(40, "token") }],
      outputs: [bob.address, STRANGER].map((address) => ({ address, coins: each })),
    };
    const message = { typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend", value };
    ok(await client.signAndBroadcast(alice.address, [message], "auto"));
  });
  await step("more than there is", async () => {
    const riches = stargate.coins("1000000000000000", "token");
    const sent = await client.sendTokens(alice.address, bob.address, riches, FEE);
    assert.equal(sent.code, 5);
    assert.match(sent.rawLog ?? "", /spendable balance \d+token is smaller than 1000000000000000token/);
  });
  await step("too little gas", async () => {
    const fee = { ...FEE, gas: "60000" };
    const sent = await client.sendTokens(alice.address, bob.address, coins, fee);
    assert.equal(sent.code, 11);
    assert.match(sent.rawLog, /out of gas in location: .*; gasWanted: 60000, gasUsed: \d+: out of gas/);
  });
  const refused = async (code, message, { memo = "", timeout, signer } = {}) => {
    const raw = await client.sign(alice.address, [message], FEE, memo, signer, timeout);
    const bytes = TxRaw.encode(raw).finish();
    await assert.rejects(client.broadcastTx(bytes), (error) => error.code === code);
  };
  const message = transfer(alice.address, bob.address, 1);
  const chainId = await client.getChainId();
  await step("a wrong sequence", async () => {
    const { accountNumber } = await client.getSequence(alice.address);
    await refused(32, message, { signer: { accountNumber, sequence: 99, chainId } });
  });
  await step("a signature for another chain", async () => {
    const signer = { ...await client.getSequence(alice.address), chainId: "another" };
    await refused(4, message, { signer });
  });
  await step("a block that is past", () => refused(30, message, { timeout: 1n }));
  await step("a long memo", () => refused(12, message, { memo: "m".repeat(257) }));
  await step("several that wait", async () => {
    const { accountNumber, sequence } = await client.getSequence(alice.address);
    const hashes = [];
    for (let next = sequence; next < sequence + 5; next += 1) {
      const signer = { accountNumber, sequence: next, chainId };
      const raw = await client.sign(alice.address, [message], FEE, "", signer);
      hashes.push(await client.broadcastTxSync(TxRaw.encode(raw).finish()));
    }
    while (!(await client.getTx(hashes[4]))) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const found = await Promise.all(hashes.map((hash) => client.getTx(hash)));
    assert.deepEqual(found.map((one) => one.code), [0, 0, 0, 0, 0]);
  });
  await step("search", async () => {
    const found = await client.searchTx([
      { key: "message.action", value: "/cosmos.bank.v1beta1.MsgSend" },
      { key: "message.sender", value: alice.address },
    ]);
    // Those that succeeded.
    assert.equal(found.length, 7);
    assert.equal((await client.searchTx(`transfer.recipient='${STRANGER}'`)).length, 2);
  });
}

async function aminoJson() {
  const { accounts: [, bob], client } = await signing(amino.Secp256k1HdWallet);
  await step("amino", async () => {
    const coins = stargate.coins(3, "token");
    ok(await client.sendTokens(bob.address, STRANGER, coins, FEE, "<b>&amp;é</b>"));
    const message = transfer(bob.address, STRANGER, 1);
    ok(await client.signAndBroadcast(bob.address, [message], FEE, "", 1000n));
  });
}

/** What makeMultisignedTxBytes() would be, which fails with the newest of its dependencies. */
function joined(key, sequence, signed, signers) {
  const bits = signers.reduce((byte, at) => byte | (0x80 >> at), 0);
  const single = { single: { mode: SignMode.SIGN_MODE_LEGACY_AMINO_JSON } };
  const bitarray = { extraBitsStored: 3, elems: new Uint8Array([bits]) };
  const modeInfo = { multi: { bitarray, modeInfos: signers.map(() => single) } };
  const amount = FEE.amount;
  const authInfo = AuthInfo.fromPartial({
    signerInfos: [{ publicKey: encodePubkey(key), modeInfo, sequence: BigInt(sequence) }],
    fee: { amount, gasLimit: BigInt(FEE.gas) },
  });
  const signatures = signed.map((one) => one.signatures[0]);
  return TxRaw.encode(TxRaw.fromPartial({
    bodyBytes: signed[0].bodyBytes,
    authInfoBytes: AuthInfo.encode(authInfo).finish(),
    signatures: [MultiSignature.encode(MultiSignature.fromPartial({ signatures })).finish()],
  })).finish();
}

async function multisig() {
  const { accounts, client, wallet } = await signing(amino.Secp256k1HdWallet);
  const keys = accounts.map(({ pubkey }) => amino.encodeSecp256k1Pubkey(pubkey));
  const key = amino.createMultisigThresholdPubkey(keys, 2, true);
  const address = amino.pubkeyToAddress(key, "cosmos");
  await step("multisig", async () => {
    const rich = [...stargate.coins(100000, "stake"), ...stargate.coins(100, "token")];
    ok(await client.sendTokens(accounts[0].address, address, rich, FEE));
    const chainId = await client.getChainId();
    const { accountNumber, sequence } = await client.getSequence(address);
    const message = transfer(address, STRANGER, 5);
    const signed = await Promise.all([accounts[0], accounts[2]].map(async (signer) => {
      const offline = await stargate.SigningStargateClient.offline(wallet);
      const explicit = { accountNumber, sequence, chainId };
      return offline.sign(signer.address, [message], FEE, "", explicit);
    }));
    const raw = joined(key, sequence, signed, [0, 2]);
    const sent = await client.broadcastTx(raw);
    ok(sent);
    assert.equal((await client.getSequence(address)).sequence, 1);
  });
}

async function all() {
  await direct();
  await aminoJson();
  await multisig();
}

all().then(() => process.exit(0), (error) => {
  console.error(error && error.stack);
  process.exit(1);
});
