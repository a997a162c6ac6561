// What Keplr does when a page suggests a chain: it compares the chain's id by RPC and by REST,
// connects to the websocket, and probes which modules there are.
//
//     node check.js RPC REST CHAIN_ID
"use strict";

const assert = require("node:assert/strict");
const keplr = require("@keplr-wallet/chain-validator");
const { WebSocket } = require("ws");

const [rpc, rest, chainId] = process.argv.slice(2);
const connect = (url) => new WebSocket(url);

async function main() {
  await keplr.checkRPCConnectivity(chainId, rpc, connect);
  await keplr.checkRestConnectivity(chainId, rest);
  const other = /different chain id/;
  await assert.rejects(keplr.checkRPCConnectivity("another-1", rpc, connect), other);
  await assert.rejects(keplr.checkRestConnectivity("another-1", rest), other);
  return keplr.checkChainFeatures({ rpc, rest, features: [] });
}

main().then(
  (features) => console.log(JSON.stringify({ features })),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
