// npx hardhat test; the node's address is in the environment.
"use strict";

require("@nomicfoundation/hardhat-toolbox");
const { subtask } = require("hardhat/config");
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require("hardhat/builtin-tasks/task-names");

// The compiler is the npm package, as nothing is downloaded here.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async () => ({
  version: "0.8.30",
  longVersion: "0.8.30+commit.73712a01",
  compilerPath: require.resolve("solc/soljson.js"),
  isSolcJs: true,
}));

module.exports = {
  solidity: { version: "0.8.30", settings: { evmVersion: "prague" } },
  networks: { node: { url: process.env.NODE_URL } },
};
