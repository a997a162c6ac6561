// What `npx hardhat` reads; the node's address is in the environment.
"use strict";

const url = process.env.NODE_URL;

module.exports = {
  defaultNetwork: "node",
  networks: { node: { url, accounts: "remote" }, keys: { url, accounts: [process.env.KEY] } },
};
