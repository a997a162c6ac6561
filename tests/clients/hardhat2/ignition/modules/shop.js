// npx hardhat ignition deploy ignition/modules/shop.js
"use strict";

const { buildModule } = require("@nomicfoundation/hardhat-ignition/modules");

module.exports = buildModule("Shop", (m) => {
  const statistics = m.library("Statistics");
  const linked = m.contract("Linked", [], { libraries: { Statistics: statistics } });
  const token = m.contract("Token", [1000n]);
  const vault = m.contract("Vault", [0n], { value: 5n });
  m.call(token, "transfer", [vault, 7n]);
  const factory = m.contract("Factory");
  const made = m.call(factory, "make", [3n]);
  const child = m.contractAt("Child", m.readEventArgument(made, "Made", "child"));
  m.call(child, "set", [9n]);
  return { linked, token, vault, child };
});
