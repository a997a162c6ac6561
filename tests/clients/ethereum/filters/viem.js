// viem; see helpers.js.
"use strict";

const { createPublicClient, http, webSocket } = require("viem");
const { url, live, CONTRACT } = require("./helpers");

const transport = url.startsWith("ws") ? webSocket(url) : http(url);
const client = createPublicClient({ transport, cacheTime: 0 });

live({
  make: {
    logs: () => client.createEventFilter({ address: CONTRACT, fromBlock: 0n }),
    blocks: () => client.createBlockFilter(),
    pending: () => client.createPendingTransactionFilter(),
  },
  changes: (filter) => client.getFilterChanges({ filter }),
  logs: (filter) => client.getFilterLogs({ filter }),
  uninstall: (filter) => client.uninstallFilter({ filter }),
  send: (serializedTransaction) => client.sendRawTransaction({ serializedTransaction }),
  log: ({ address, topics, data, logIndex }) => ({ address, topics, data, index: logIndex }),
}).then(() => process.exit(0));
