// npx hardhat test; the toolbox and the node's address are in the environment.
import { fileURLToPath } from "node:url";
import { defineConfig } from "hardhat/config";

// Only one toolbox fits in a project.
const { TOOLBOX, NODE_URL } = process.env;
const { default: toolbox } = await import(`@nomicfoundation/hardhat-toolbox-${TOOLBOX}`);

export default defineConfig({
  plugins: [toolbox],
  solidity: {
    version: "0.8.30",
    // The compiler is the npm package, as nothing is downloaded here.
    path: fileURLToPath(import.meta.resolve("solc/soljson.js")),
    settings: { evmVersion: "prague" },
  },
  networks: { noderpc: { type: "http", url: NODE_URL } },
  paths: { tests: `test/${TOOLBOX}` },
});
