// ethers, which has filters of its own behind `on` over HTTP; see helpers.js.
"use strict";

const { JsonRpcProvider, WebSocketProvider } = require("ethers");
const helpers = require("./helpers");
const { url, transfer, emitting, block, live, CONTRACT, TOPIC, step, small, awaited } = helpers;

const isSocket = url.startsWith("ws");
const provider = isSocket
  ? new WebSocketProvider(url)
  : new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const send = (method) => (...params) => provider.send(method, params);

const log = (l) => ({
  address: small(l.address),
  topics: l.topics,
  data: l.data,
  index: Number(l.index ?? l.logIndex),
});

async function main() {
  await (isSocket ? lived() : watched());
  process.exit(0);
}

/** It has no methods for filters, and over a websocket no use for them. */
const lived = () =>
  live({
    make: {
      logs: () => send("eth_newFilter")({ fromBlock: "0x0", address: CONTRACT }),
      blocks: send("eth_newBlockFilter"),
      pending: send("eth_newPendingTransactionFilter"),
    },
    changes: send("eth_getFilterChanges"),
    logs: send("eth_getFilterLogs"),
    uninstall: send("eth_uninstallFilter"),
    send: send("eth_sendRawTransaction"),
    log,
  });

/** What `on` makes of it over HTTP: a filter, which is polled when a block has come. */
async function watched() {
  const answered = Object.fromEntries(
    ["eth_getFilterChanges", "eth_blockNumber", "eth_uninstallFilter"].map((m) => [m, awaited(m)]),
  );
  const found = awaited("log"), asked = new Map();
  provider.on("debug", ({ action, payload, result }) => {
    for (const call of [payload ?? []].flat()) asked.set(call.id, call.method);
    if (action !== "receiveRpcResult") return;
    for (const answer of result) answered[asked.get(answer.id)]?.resolve(answer.result);
  });
  const wanted = { address: CONTRACT, topics: [TOPIC] };
  await provider.on(wanted, (l) => found.resolve(log(l)));
  await step("at first", () => answered.eth_getFilterChanges.promise);
  await answered.eth_blockNumber.promise;
  await send("eth_sendRawTransaction")(transfer);
  await send("eth_sendRawTransaction")(emitting);
  await block();
  await step("told of", () => found.promise);
  await provider.off(wanted);
  await step("uninstalled", () => answered.eth_uninstallFilter.promise);
}

main();
