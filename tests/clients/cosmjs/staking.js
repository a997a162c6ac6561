// Messages and queries of x/staking and x/distribution with CosmJS, signed in both modes.
//
//     node staking.js URL MNEMONIC OPERATOR
//
// OPERATOR is the validator of the chain; the accounts of the mnemonic are rich.
"use strict";

const assert = require("node:assert/strict");
const { fromBech32, toBech32 } = require("@cosmjs/encoding");
const { DirectSecp256k1HdWallet, encodePubkey, makeCosmoshubPath } = require("@cosmjs/proto-signing");
const amino = require("@cosmjs/amino");
const stargate = require("@cosmjs/stargate");
const { connectComet } = require("@cosmjs/tendermint-rpc");
const { step } = require("./steps");

const [url, mnemonic, operator] = process.argv.slice(2);
const FEE = { amount: stargate.coins(5000, "stake"), gas: "700000" };
const stake = (amount) => ({ denom: "stake", amount: String(amount) });
const KEEP = "[do-not-modify]";
const description = (moniker) => ({
  moniker, identity: KEEP, website: KEEP, securityContact: KEEP, details: KEEP,
});

async function queries() {
  const comet = await connectComet(url);
  return stargate.QueryClient.withExtensions(
    comet,
    stargate.setupStakingExtension,
    stargate.setupDistributionExtension,
    stargate.setupMintExtension,
    stargate.setupSlashingExtension,
  );
}

/** Runs all messages with one account; `mode` is the name of the mode of its signatures. */
async function run(mode, Wallet, index) {
  const options = { hdPaths: [makeCosmoshubPath(index)] };
  const wallet = await Wallet.fromMnemonic(mnemonic, options);
  const [{ address }] = await wallet.getAccounts();
  const own = toBech32("cosmosvaloper", fromBech32(address, 90).data);
  const client = await stargate.SigningStargateClient.connectWithSigner(url, wallet, {
    broadcastPollIntervalMs: 20,
  });
  const query = await queries();
  const send = async (name, module, value) => {
    const typeUrl = `/cosmos.${module}.v1beta1.Msg${name}`;
    const sent = await client.signAndBroadcast(address, [{ typeUrl, value }], FEE);
    assert.equal(sent.code, 0, `${name}: ${sent.rawLog}`);
    return sent;
  };
  const delegated = async (validator) => {
    const found = await client.getDelegation(address, validator);
    return found ? Number(found.amount) : 0;
  };
  const key = new Uint8Array(32).fill(index);

  await step(`${mode}: create a validator`, async () => void (await send("CreateValidator", "staking", {
    description: description("ours"),
    commission: {
      rate: "100000000000000000", maxRate: "200000000000000000", maxChangeRate: "10000000000000000",
    },
    minSelfDelegation: "1",
    // CosmJS does not leave out an empty address in amino JSON, as the SDK does.
    delegatorAddress: address,
    validatorAddress: own,
    pubkey: encodePubkey({ type: "tendermint/PubKeyEd25519", value: Buffer.from(key).toString("base64") }),
    value: stake(2_000_000),
  })));
  await step(`${mode}: edit it`, async () => {
    await send("EditValidator", "staking", {
      description: description("edited"), validatorAddress: own, commissionRate: "", minSelfDelegation: "",
    });
    const { validator } = await query.staking.validator(own);
    assert.equal(validator.description.moniker, "edited");
    assert.equal(validator.tokens, "2000000");
  });
  await step(`${mode}: delegate`, async () => {
    const sent = await client.delegateTokens(address, operator, stake(3_000_000), FEE);
    assert.equal(sent.code, 0, sent.rawLog);
    assert.equal(await delegated(operator), 3_000_000);
  });
  await step(`${mode}: redelegate`, async () => {
    await send("BeginRedelegate", "staking", {
      delegatorAddress: address, validatorSrcAddress: operator, validatorDstAddress: own, amount: stake(1_000_000),
    });
    assert.deepEqual([await delegated(operator), await delegated(own)], [2_000_000, 3_000_000]);
    const { redelegationResponses } = await query.staking.redelegations(address, operator, own);
    assert.equal(redelegationResponses.length, 1);
  });
  await step(`${mode}: undelegate, and cancel a part`, async () => {
    const { height } = await client.undelegateTokens(address, operator, stake(1_000_000), FEE);
    await send("CancelUnbondingDelegation", "staking", {
      delegatorAddress: address, validatorAddress: operator, amount: stake(400_000), creationHeight: BigInt(height),
    });
    assert.equal(await delegated(operator), 1_400_000);
    const { unbond } = await query.staking.unbondingDelegation(address, operator);
    assert.equal(unbond.entries[0].balance, "600000");
  });
  await step(`${mode}: withdraw rewards to another address`, async () => {
    const other = toBech32("cosmos", new Uint8Array(20).fill(index));
    await send("SetWithdrawAddress", "distribution", { delegatorAddress: address, withdrawAddress: other });
    const { rewards } = await query.distribution.delegationRewards(address, operator);
    assert.ok(BigInt(rewards[0].amount) > 0n);
    const sent = await client.withdrawRewards(address, operator, FEE);
    assert.equal(sent.code, 0, sent.rawLog);
    assert.ok(BigInt((await client.getBalance(other, "stake")).amount) > 0n);
  });
  await step(`${mode}: withdraw commission`, async () => {
    await client.sendTokens(address, address, [stake(1)], FEE);
    const withdrawn = send("WithdrawValidatorCommission", "distribution", { validatorAddress: own });
    if (mode === "direct") return void (await withdrawn);
    // CosmJS's name of this message in amino JSON is not the SDK's, which refuses the signature.
    await assert.rejects(withdrawn, (error) => error.code === 4);
  });
  await step(`${mode}: fund the community pool`, async () => {
    const before = BigInt((await query.distribution.communityPool()).pool[0].amount);
    await send("FundCommunityPool", "distribution", { depositor: address, amount: [stake(1_000)] });
    assert.ok(BigInt((await query.distribution.communityPool()).pool[0].amount) > before);
  });
  await step(`${mode}: read parameters`, async () => {
    assert.equal((await query.staking.params()).params.bondDenom, "stake");
    assert.equal((await query.mint.params()).mintDenom, "stake");
    assert.ok((await query.mint.inflation()).toFloatApproximation() > 0.05);
    assert.ok((await query.slashing.signingInfos()).info.length > 0);
    assert.equal((await query.distribution.params()).params.communityTax, "20000000000000000");
  });
}

async function main() {
  await run("direct", DirectSecp256k1HdWallet, 1);
  await run("amino", amino.Secp256k1HdWallet, 2);
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
