#!/usr/bin/env node
// solc as forge calls it: `--version`, and `--standard-json` from stdin.
const solc = require("solc");

if (process.argv.includes("--version")) {
  // forge wants the name of a platform; the rest is the package's own.
  console.log(`solc, the solidity compiler\nVersion: ${solc.version().replace("Emscripten.clang", "Linux.g++")}`);
} else {
  let input = "";
  process.stdin.on("data", (piece) => (input += piece));
  process.stdin.on("end", () => process.stdout.write(solc.compile(input)));
}
