// web3.js; see helpers.js.
"use strict";

const { Web3 } = require("web3");
const { url, live, CONTRACT, small } = require("./helpers");

const web3 = new Web3(url);

live({
  make: {
    logs: () => web3.eth.createNewFilter({ address: CONTRACT, fromBlock: 0 }),
    blocks: () => web3.eth.createNewBlockFilter(),
    pending: () => web3.eth.createNewPendingTransactionFilter(),
  },
  changes: (filter) => web3.eth.getFilterChanges(filter),
  logs: (filter) => web3.eth.getFilterLogs(filter),
  uninstall: (filter) => web3.eth.uninstallFilter(filter),
  send: (raw) =>
    web3.eth.requestManager.send({ method: "eth_sendRawTransaction", params: [raw] }),
  log: (l) => ({
    address: small(l.address),
    topics: l.topics,
    data: l.data,
    index: Number(l.logIndex),
  }),
}).then(() => process.exit(0));
