// The tests of the project, for hardhat 2 and 3. `own` is what the matchers of hardhat 3 take
// before their arguments.
"use strict";

const ETHER = 10n ** 18n;
const YEAR = 365 * 24 * 3600;
const NOBODY = "0x" + "77".repeat(20);
const DEPLOYER = "0x4e59b44847b379578588920ca78fbf26c0b4956c";

module.exports = ({ ethers, expect, helpers, own }) => {
  const { loadFixture, mine, time } = helpers;
  const { provider, parseEther, ZeroAddress } = ethers;
  const ask = (method, ...params) => provider.send(method, params);
  const deploy = (name, ...args) => ethers.deployContract(name, args);
  const fund = async (to, value = ETHER) => helpers.setBalance(await ethers.resolveAddress(to), value);
  const made = async (sent) => {
    const { logs } = await (await sent).wait();
    return ethers.getAddress("0x" + logs[0].data.slice(-40));
  };
  const failure = async (promise) => {
    try {
      await promise;
    } catch (error) {
      return error;
    }
    throw new Error("nothing was thrown");
  };

  async function world() {
    const [owner, alice, bob] = await ethers.getSigners();
    return {
      owner, alice, bob,
      token: await deploy("Token", 1000n),
      collection: await deploy("Collection"),
      faults: await deploy("Faults"),
      probe: await deploy("Probe"),
      factory: await deploy("Factory"),
      holder: await deploy("Holder"),
    };
  }
  async function vault() {
    const opens = (await time.latest()) + YEAR;
    const found = await ethers.deployContract("Vault", [opens], { value: ETHER });
    const [owner, alice, bob] = await ethers.getSigners();
    return { vault: found, opens, owner, alice, bob };
  }
  // Defines a test on the contracts of a fixture.
  const on = (fixture) => (title, test) => it(title, async () => test(await loadFixture(fixture)));
  const inWorld = on(world), atVault = on(vault);

  // The node may have run other tests.
  before(() => helpers.reset());

  describe("deployment", () => {
    inWorld("stores the runtime code", async ({ token }) => {
      expect(await token.getDeployedCode()).to.have.length.greaterThan(1000);
      expect(await token.deploymentTransaction().wait()).to.include({ status: 1, contractAddress: token.target });
    });
    inWorld("emits in the constructor", async ({ token, owner }) => {
      await expect(token.deploymentTransaction()).to.emit(token, "Transfer").withArgs(ZeroAddress, owner.address, 1000n);
    });
    inWorld("has the address that follows from the nonce", async ({ bob }) => {
      const nonce = await bob.getNonce();
      const from = bob.address;
      const found = await ethers.deployContract("Holder", [], bob);
      expect(found.target).to.equal(ethers.getCreateAddress({ from, nonce }));
    });
    atVault("takes ether and immutables", async ({ vault, opens, owner }) => {
      expect(await provider.getBalance(vault)).to.equal(ETHER);
      expect(await vault.opens()).to.equal(opens);
      expect(await vault.owner()).to.equal(owner.address);
    });
    it("refuses ether for a constructor that is not payable", async () => {
      const factory = await ethers.getContractFactory("Token");
      const tx = await factory.getDeployTransaction(1);
      const [owner] = await ethers.getSigners();
      await expect(owner.sendTransaction({ ...tx, value: 1n })).to.be.revertedWithoutReason(...own);
    });
    it("refuses code of more than 24,576 bytes", async () => {
      const [owner] = await ethers.getSigners();
      // PUSH2 size PUSH0 RETURN
      const failed = await failure(owner.sendTransaction({ data: "0x6160015ff3" }));
      expect(failed.message).to.match(/code size/i);
      expect((await owner.sendTransaction({ data: "0x6160005ff3" })).hash).to.be.a("string");
    });
    it("refuses init code of more than 49,152 bytes", async () => {
      const [owner] = await ethers.getSigners();
      const failed = await failure(owner.sendTransaction({ data: "0x" + "00".repeat(49153), gasLimit: 5_000_000 }));
      expect(failed.message).to.match(/initcode|init code/i);
    });
    it("links libraries", async () => {
      const library = await deploy("Statistics");
      const linked = await ethers.deployContract("Linked", { libraries: { Statistics: library } });
      expect(await linked.summary([3, 9, 4])).to.deep.equal([16n, 9n]);
    });
    inWorld("creates contracts from contracts", async ({ factory }) => {
      const child = await ethers.getContractAt("Child", await made(factory.make(5, { value: 7n })));
      expect(await child.number()).to.equal(5n);
      expect(await child.maker()).to.equal(factory.target);
      expect(await provider.getBalance(child)).to.equal(7n);
    });
    inWorld("gives contracts of CREATE2 the predicted address", async ({ factory }) => {
      const salt = ethers.id("salt");
      const predicted = await factory.predicted(salt, 5);
      await factory.salted(salt, 5);
      expect(await (await ethers.getContractAt("Child", predicted)).number()).to.equal(5n);
    });
    inWorld("uses a salt once", async ({ factory }) => {
      await factory.salted(ethers.ZeroHash, 5);
      await expect(factory.salted(ethers.ZeroHash, 5)).to.be.revertedWithoutReason(...own);
      await factory.salted(ethers.ZeroHash, 6);
    });
    inWorld("has the usual deployer for CREATE2", async ({ owner }) => {
      const { bytecode } = await ethers.getContractFactory("Holder");
      const salt = ethers.hexlify(ethers.randomBytes(32));
      await owner.sendTransaction({ to: DEPLOYER, data: salt + bytecode.slice(2) });
      const address = ethers.getCreate2Address(DEPLOYER, salt, ethers.keccak256(bytecode));
      expect(await provider.getCode(address)).to.have.length.greaterThan(2);
    });
    inWorld("clones by minimal proxies", async ({ factory }) => {
      const original = await ethers.deployContract("Child", [3]);
      const address = await made(factory.clone(original.target));
      const clone = await ethers.getContractAt("Child", address);
      await clone.set(11);
      expect([await clone.number(), await original.number()]).to.deep.equal([11n, 3n]);
    });
    inWorld("destroys what the same transaction created", async ({ factory }) => {
      const child = await made(factory.makeAndDestroy(NOBODY, { value: 9n }));
      expect(await provider.getCode(child)).to.equal("0x");
      expect(await provider.getBalance(NOBODY)).to.equal(9n);
    });
    inWorld("keeps older contracts that destroy themselves", async ({ factory, bob }) => {
      const child = await ethers.getContractAt("Child", await made(factory.make(5, { value: 7n })));
      await expect(child.destroy(bob.address)).to.changeEtherBalance(...own, bob, 7n);
      expect(await child.number()).to.equal(5n);
    });
  });

  describe("tokens", () => {
    inWorld("have constants", async ({ token }) => {
      const constants = [await token.name(), await token.symbol(), await token.decimals()];
      expect(constants).to.deep.equal(["Token", "TOK", 18n]);
    });
    inWorld("are transferred with an event", async ({ token, owner, alice }) => {
      await expect(token.transfer(alice.address, 5n)).to.emit(token, "Transfer").withArgs(owner.address, alice.address, 5n);
    });
    inWorld("change two balances", async ({ token, owner, alice }) => {
      await expect(token.transfer(alice.address, 5n)).to.changeTokenBalances(...own, token, [owner, alice], [-5n, 5n]);
    });
    inWorld("change no other balance", async ({ token, alice, bob }) => {
      await expect(token.transfer(alice.address, 5n)).to.changeTokenBalance(...own, token, bob, 0n);
    });
    inWorld("can be spent after an approval", async ({ token, owner, alice, bob }) => {
      await token.approve(alice.address, 10n);
      await token.connect(alice).transferFrom(owner.address, bob.address, 4n);
      expect(await token.allowance(owner.address, alice.address)).to.equal(6n);
      expect(await token.balanceOf(bob.address)).to.equal(4n);
    });
    inWorld("say who has too few", async ({ token, alice, bob }) => {
      await expect(token.connect(alice).transfer(bob.address, 1n))
        .to.be.revertedWithCustomError(token, "InsufficientBalance").withArgs(alice.address, 0n, 1n);
    });
    inWorld("say how many are approved", async ({ token, owner, alice }) => {
      await expect(token.connect(alice).transferFrom(owner.address, alice.address, 1n))
        .to.be.revertedWithCustomError(token, "InsufficientAllowance").withArgs(0n, 1n);
    });
    inWorld("stay where they are after a static call", async ({ token, alice }) => {
      expect(await token.transfer.staticCall(alice.address, 5n)).to.equal(true);
      expect(await token.balanceOf(alice.address)).to.equal(0n);
    });
    inWorld("emit nothing but the event", async ({ token, alice }) => {
      await expect(token.transfer(alice.address, 5n)).to.not.emit(token, "Approval");
    });
    inWorld("are counted at an older block", async ({ token, alice }) => {
      const blockTag = await provider.getBlockNumber();
      await token.transfer(alice.address, 5n);
      expect(await token.balanceOf(alice.address, { blockTag })).to.equal(0n);
      expect(await token.balanceOf(alice.address)).to.equal(5n);
    });
    inWorld("are counted in the pending block", async ({ token, owner, alice, bob }) => {
      await ask("evm_setAutomine", false);
      try {
        await token.approve(alice.address, 5n);
        expect(await token.allowance(owner.address, alice.address)).to.equal(0n);
        expect(await token.allowance(owner.address, alice.address, { blockTag: "pending" })).to.equal(5n);
        // Its gas is estimated after the approval.
        await token.connect(alice).transferFrom(owner.address, bob.address, 5n);
        await mine();
        expect(await token.balanceOf(bob.address)).to.equal(5n);
      } finally {
        await ask("evm_setAutomine", true);
      }
    });
    const permitted = async (token, owner, spender, deadline) => {
      const { chainId } = await provider.getNetwork();
      const domain = { name: "Token", version: "1", chainId, verifyingContract: token.target };
      const fields = "address owner,address spender,uint256 value,uint256 nonce,uint256 deadline";
      const Permit = fields.split(",").map((field) => {
        const [type, name] = field.split(" ");
        return { type, name };
      });
      const nonce = await token.nonces(owner.address);
      const message = { owner: owner.address, spender: spender.address, value: 3n, nonce, deadline };
      const { v, r, s } = ethers.Signature.from(await owner.signTypedData(domain, { Permit }, message));
      return [owner.address, spender.address, 3n, deadline, v, r, s];
    };
    inWorld("are approved by EIP-712 signatures of the node", async ({ token, owner, alice, bob }) => {
      const args = await permitted(token, owner, alice, (await time.latest()) + YEAR);
      await expect(token.connect(bob).permit(...args)).to.emit(token, "Approval").withArgs(owner.address, alice.address, 3n);
    });
    inWorld("are approved by EIP-712 signatures of a wallet", async ({ token, alice }) => {
      const wallet = ethers.Wallet.createRandom();
      await token.permit(...(await permitted(token, wallet, alice, (await time.latest()) + YEAR)));
      expect(await token.allowance(wallet.address, alice.address)).to.equal(3n);
    });
    inWorld("are approved by a signature once", async ({ token, owner, alice }) => {
      const args = await permitted(token, owner, alice, (await time.latest()) + YEAR);
      await token.permit(...args);
      await expect(token.permit(...args)).to.be.revertedWith("wrong signer");
    });
    inWorld("are not approved after a deadline", async ({ token, owner, alice }) => {
      const deadline = (await time.latest()) + YEAR;
      const args = await permitted(token, owner, alice, deadline);
      await time.increaseTo(deadline + 1);
      await expect(token.permit(...args)).to.be.revertedWithCustomError(token, "Expired");
    });
    inWorld("of a collection have an owner", async ({ collection, alice }) => {
      await expect(collection.connect(alice).mint()).to.emit(collection, "Transfer").withArgs(ZeroAddress, alice.address, 1n);
      expect(await collection.ownerOf(1)).to.equal(alice.address);
    });
    inWorld("of a collection are moved by their owner only", async ({ collection, alice, bob }) => {
      await collection.connect(alice).mint();
      await expect(collection.connect(bob).transferFrom(alice.address, bob.address, 1))
        .to.be.revertedWithCustomError(collection, "NotOwner").withArgs(bob.address, 1n);
    });
    inWorld("of a collection are received by contracts", async ({ collection, holder, owner }) => {
      await collection.mint();
      await expect(collection.safeTransferFrom(owner.address, holder.target, 1))
        .to.emit(holder, "Received").withArgs(owner.address, 1n).and.to.emit(collection, "Transfer");
    });
    inWorld("of a collection are not lost in other contracts", async ({ collection, token, owner }) => {
      await collection.mint();
      await expect(collection.safeTransferFrom(owner.address, token.target, 1)).to.be.revertedWithoutReason(...own);
      expect(await collection.ownerOf(1)).to.equal(owner.address);
    });
  });

  describe("failures", () => {
    inWorld("have a reason", async ({ faults }) => {
      await expect(faults.reason()).to.be.revertedWith("a reason");
    });
    inWorld("have a reason in any script", async ({ faults }) => {
      await expect(faults.unicode_()).to.be.revertedWith("Grüße 🦊");
    });
    inWorld("have no reason", async ({ faults }) => {
      await expect(faults.plain()).to.be.revertedWithoutReason(...own);
    });
    inWorld("are errors without arguments", async ({ faults }) => {
      await expect(faults.empty()).to.be.revertedWithCustomError(faults, "Empty");
    });
    inWorld("are errors with structs and arrays", async ({ faults, owner }) => {
      await expect(faults.detailed()).to.be.revertedWithCustomError(faults, "Detailed")
        .withArgs(owner.address, [0n, 7n], [3n, "here"]);
    });
    for (const [code, method, ...args] of [
      [0x01, "asserts", 1], [0x11, "overflows", 1], [0x12, "divides", 1], [0x21, "converts", 1],
      [0x31, "pops"], [0x32, "reads", 5], [0x41, "allocates", 1],
    ]) {
      inWorld(`are the panic 0x${code.toString(16)}`, async ({ faults }) => {
        await expect(faults[method].staticCall(...args)).to.be.revertedWithPanic(code);
      });
    }
    inWorld("are found when gas is estimated", async ({ faults }) => {
      await expect(faults.pops()).to.be.revertedWithPanic(0x31);
      expect((await failure(faults.pops.estimateGas())).data).to.match(/^0x4e487b71/);
    });
    inWorld("are invalid instructions", async ({ faults }) => {
      expect((await failure(faults.invalid())).message).to.match(/invalid opcode/i);
    });
    inWorld("are thrown through calls", async ({ faults }) => {
      await expect(faults.nested()).to.be.revertedWith("a reason");
    });
    inWorld("are caught with their reason", async ({ faults }) => {
      expect(await faults.caught()).to.equal("a reason");
    });
    inWorld("are caught with their panic", async ({ faults }) => {
      expect(await faults.caughtPanic()).to.equal(1n);
    });
    inWorld("are caught with their data", async ({ faults }) => {
      expect(await faults.caughtData()).to.equal(ethers.id("Empty()").slice(0, 10));
    });
    inWorld("are passed on by contracts", async ({ faults, probe }) => {
      const data = faults.interface.encodeFunctionData("detailed");
      await expect(probe.bubble(faults.target, data)).to.be.revertedWithCustomError(faults, "Detailed");
    });
    inWorld("are mined with a gas limit of the caller", async ({ faults }) => {
      const failed = await failure((async () => (await faults.pops({ gasLimit: 100_000 })).wait())());
      const { hash } = failed.receipt ?? (await provider.getBlock("latest", true)).prefetchedTransactions[0];
      const receipt = await provider.getTransactionReceipt(hash);
      expect(receipt.status).to.equal(0);
      expect(receipt.gasUsed).to.be.lessThan(100_000n);
    });
    inWorld("use all gas if it is not enough", async ({ faults, bob }) => {
      const nonce = await bob.getNonce();
      await failure((async () => (await faults.connect(bob).consumes({ gasLimit: 200_000 })).wait())());
      const block = await provider.getBlock("latest", true);
      const { hash } = block.prefetchedTransactions[0];
      expect(await provider.getTransactionReceipt(hash)).to.include({ status: 0, gasUsed: 200_000n });
      expect(await bob.getNonce()).to.equal(nonce + 1);
    });
    inWorld("leave the state unchanged", async ({ token, alice, probe }) => {
      const data = token.interface.encodeFunctionData("transfer", [alice.address, 1n]);
      expect((await probe.call.staticCall(token.target, data)).ok).to.equal(false);
      await probe.call(token.target, data);
      expect(await token.balanceOf(alice.address)).to.equal(0n);
    });
    inWorld("name an unknown method", async ({ token, owner }) => {
      await expect(owner.sendTransaction({ to: token.target, data: "0x12345678" })).to.be.revertedWithoutReason(...own);
    });
    it("name missing ether", async () => {
      const poor = ethers.Wallet.createRandom(provider);
      const failed = await failure(poor.sendTransaction({ to: NOBODY, value: 1n, gasLimit: 21000 }));
      expect(failed.message).to.match(/insufficient funds/i);
    });
  });

  describe("ether", () => {
    atVault("is received without data", async ({ vault, alice }) => {
      await expect(alice.sendTransaction({ to: vault.target, value: 3n }))
        .to.emit(vault, "Deposited").withArgs(alice.address, 3n, "0x");
    });
    atVault("is received with unknown data", async ({ vault, alice }) => {
      await expect(alice.sendTransaction({ to: vault.target, value: 3n, data: "0xdeadbeef" }))
        .to.emit(vault, "Deposited").withArgs(alice.address, 3n, "0xdeadbeef");
    });
    atVault("changes one balance", async ({ vault, alice }) => {
      await expect(vault.connect(alice).deposit({ value: 5n })).to.changeEtherBalance(...own, alice, -5n);
    });
    atVault("changes two balances", async ({ vault, alice }) => {
      await expect(vault.connect(alice).deposit({ value: 5n }))
        .to.changeEtherBalances(...own, [alice, vault], [-5n, 5n]);
    });
    atVault("pays the fee", async ({ alice, bob }) => {
      const tx = await alice.sendTransaction({ to: bob.address, value: 5n });
      const { fee } = await tx.wait();
      await expect(() => tx).to.changeEtherBalance(...own, alice, -5n - fee, { includeFee: true });
    });
    atVault("moves for 21,000 gas", async ({ alice, bob }) => {
      expect(await (await alice.sendTransaction({ to: bob.address, value: 5n })).wait()).to.include({ gasUsed: 21000n });
    });
    atVault("stays in the vault before its time", async ({ vault, opens }) => {
      await expect(vault.withdraw()).to.be.revertedWithCustomError(vault, "TooEarly")
        .withArgs((now) => now < opens, opens);
    });
    atVault("is paid back in time", async ({ vault, alice, opens }) => {
      await vault.connect(alice).deposit({ value: 5n });
      await time.increaseTo(opens);
      await expect(vault.connect(alice).withdraw()).to.emit(vault, "Withdrawn").withArgs(alice.address, 5n);
    });
    atVault("is paid back at the next block's time", async ({ vault, alice, opens }) => {
      await vault.connect(alice).deposit({ value: 5n });
      await time.setNextBlockTimestamp(opens);
      await expect(vault.connect(alice).withdraw()).to.changeEtherBalance(...own, alice, 5n);
    });
    atVault("is paid by the owner only", async ({ vault, alice }) => {
      await expect(vault.connect(alice).pay(alice.address, 1n)).to.be.revertedWith("not the owner");
    });
    atVault("is paid by a new owner", async ({ vault, alice, bob }) => {
      await vault.hand(alice.address);
      await expect(vault.connect(alice).pay(bob.address, 2n)).to.changeEtherBalances(...own, [vault, bob], [-2n, 2n]);
    });
    atVault("is not paid twice", async ({ vault, bob }) => {
      await expect(vault.pay(bob.address, 2n * ETHER)).to.be.revertedWithoutReason(...own);
    });
    inWorld("is passed on by calls", async ({ probe, alice }) => {
      await expect(probe.call(alice.address, "0x", { value: 4n })).to.changeEtherBalance(...own, alice, 4n);
    });
    inWorld("is refused by methods that are not payable", async ({ owner, token }) => {
      const data = token.interface.encodeFunctionData("transfer", [NOBODY, 1n]);
      await expect(owner.sendTransaction({ to: token.target, data, value: 1n })).to.be.revertedWithoutReason(...own);
    });
  });

  describe("contracts", () => {
    inWorld("read the block", async ({ probe }) => {
      const found = await probe.environment({ blockTag: "latest" });
      const block = await provider.getBlock("latest");
      expect(found.chain).to.equal((await provider.getNetwork()).chainId);
      expect(found.coinbase).to.equal(block.miner);
      expect(found.gasLimit).to.equal(block.gasLimit);
      expect(found.height - BigInt(block.number)).to.be.oneOf([0n, 1n]);
    });
    inWorld("read the hash of the block before", async ({ probe }) => {
      const { blockNumber } = await (await probe.keep()).wait();
      expect(await probe.last()).to.equal((await provider.getBlock(blockNumber - 1)).hash);
    });
    inWorld("read the sender", async ({ probe, alice }) => {
      expect(await probe.connect(alice).caller()).to.deep.equal([alice.address, alice.address]);
    });
    inWorld("read the sender through calls", async ({ probe, alice }) => {
      const data = probe.interface.encodeFunctionData("caller");
      const { answer } = await probe.connect(alice).staticCall(probe.target, data);
      const found = probe.interface.decodeFunctionResult("caller", answer);
      expect(found).to.deep.equal([probe.target, alice.address]);
    });
    inWorld("read the gas price of a call", async ({ probe }) => {
      expect(await probe.price({ gasPrice: 3_000_000_000n })).to.equal(3_000_000_000n);
    });
    inWorld("read code hashes", async ({ probe, token }) => {
      expect(await probe.codeHash(token.target)).to.equal(ethers.keccak256(await provider.getCode(token.target)));
    });
    inWorld("compute digests", async ({ probe }) => {
      const data = ethers.toUtf8Bytes("data");
      const wanted = [ethers.keccak256(data), ethers.sha256(data), ethers.ripemd160(data)];
      expect(await probe.digests(data)).to.deep.equal(wanted);
    });
    inWorld("compute powers", async ({ probe }) => {
      expect(await probe.power(3, 200, 1_000_007)).to.equal(3n ** 200n % 1_000_007n);
    });
    inWorld("recover signers of EIP-191 messages", async ({ probe, alice }) => {
      const { v, r, s } = ethers.Signature.from(await alice.signMessage("hello"));
      expect(await probe.recover(ethers.hashMessage("hello"), v, r, s)).to.equal(alice.address);
    });
    inWorld("copy memory", async ({ probe }) => {
      const data = ethers.hexlify(ethers.randomBytes(100));
      expect(await probe.copy(data)).to.equal(data);
    });
    inWorld("use transient storage", async ({ probe }) => {
      await probe.writeTransient(4);
      await probe.writeTransient(5);
      expect(await probe.transientSum()).to.equal(10n);
    });
    inWorld("delegate to code that writes their storage", async ({ probe }) => {
      const child = await ethers.deployContract("Child", [3]);
      await probe.delegate(child.target, child.interface.encodeFunctionData("set", [12]));
      expect([await probe.number(), await child.number()]).to.deep.equal([12n, 3n]);
    });
    inWorld("can't write in static calls", async ({ probe }) => {
      const child = await ethers.deployContract("Child", [3]);
      const data = child.interface.encodeFunctionData("set", [12]);
      expect((await probe.staticCall(child.target, data)).ok).to.equal(false);
    });
    inWorld("log to the console in transactions", async ({ probe }) => {
      const { status, logs } = await (await probe.log("logged", 42)).wait();
      expect([status, logs.length, await probe.number()]).to.deep.equal([1, 0, 42n]);
    });
    inWorld("log to the console in calls", async ({ probe, alice }) => {
      expect(await probe.logged(alice.address, true)).to.equal(true);
    });
  });

  describe("events", () => {
    async function moved() {
      const found = await world();
      const { token, alice, bob } = found;
      for (const [to, value] of [[alice, 1n], [bob, 2n], [alice, 3n]]) await token.transfer(to.address, value);
      return found;
    }
    const afterMoves = on(moved);
    const values = (logs) => logs.map((log) => log.args.value);

    afterMoves("are found by an indexed argument", async ({ token, alice }) => {
      expect(values(await token.queryFilter(token.filters.Transfer(null, alice.address)))).to.deep.equal([1n, 3n]);
    });
    afterMoves("are found by one of several arguments", async ({ token, alice, bob }) => {
      const filter = token.filters.Transfer(null, [alice.address, bob.address]);
      expect(values(await token.queryFilter(filter))).to.deep.equal([1n, 2n, 3n]);
    });
    afterMoves("are found in a range of blocks", async ({ token }) => {
      const latest = await provider.getBlockNumber();
      expect(values(await token.queryFilter("Transfer", latest - 1, latest))).to.deep.equal([2n, 3n]);
    });
    afterMoves("are found in the newest blocks", async ({ token }) => {
      expect(values(await token.queryFilter("Transfer", -1))).to.deep.equal([2n, 3n]);
    });
    afterMoves("are found by the hash of a block", async ({ token }) => {
      const { hash } = await provider.getBlock("latest");
      const logs = await provider.getLogs({ blockHash: hash, address: token.target });
      expect(logs.map((log) => BigInt(log.data))).to.deep.equal([3n]);
    });
    inWorld("are found by filters of the node", async ({ token, alice }) => {
      const id = await ask("eth_newFilter", { address: token.target });
      await token.transfer(alice.address, 6n);
      expect((await ask("eth_getFilterChanges", id)).map((log) => Number(log.data))).to.deep.equal([6]);
      expect(await ask("eth_getFilterChanges", id)).to.deep.equal([]);
      expect(await ask("eth_getFilterLogs", id)).to.have.length(1);
      expect(await ask("eth_uninstallFilter", id)).to.equal(true);
    });
    inWorld("of blocks are found by filters", async () => {
      const id = await ask("eth_newBlockFilter");
      await mine(2);
      const hashes = await ask("eth_getFilterChanges", id);
      expect(hashes).to.have.length(2);
      expect((await provider.getBlock("latest")).hash).to.equal(hashes[1]);
    });
    inWorld("of pending transactions are found by filters", async ({ owner }) => {
      const id = await ask("eth_newPendingTransactionFilter");
      const { hash } = await owner.sendTransaction({ to: NOBODY });
      expect(await ask("eth_getFilterChanges", id)).to.deep.equal([hash]);
    });
    inWorld("can be anonymous", async ({ probe }) => {
      const { logs } = await (await probe.emitAnonymous(8)).wait();
      expect(logs).to.have.length(1);
      expect([logs[0].topics.length, BigInt(logs[0].data)]).to.deep.equal([0, 8n]);
    });
    inWorld("have hashes of indexed texts", async ({ probe }) => {
      const word = ethers.encodeBytes32String("text");
      await expect(probe.emitText("text", -5)).to.emit(probe, "Text")
        .withArgs((hashed) => hashed.hash === ethers.id("text"), "text", word, -5n);
    });
    inWorld("are heard by listeners", async ({ token, alice }) => {
      let heard;
      token.once("Approval", (owner, spender, value) => (heard = value));
      // It begins to listen at some block.
      while (heard === undefined) await token.approve(alice.address, 7n);
      expect(heard).to.equal(7n);
    });
  });

  describe("transactions", () => {
    inWorld("count nonces", async ({ alice }) => {
      const first = await alice.getNonce();
      for (let index = 0; index < 3; index++) {
        expect((await alice.sendTransaction({ to: NOBODY })).nonce).to.equal(first + index);
      }
      expect(await alice.getNonce()).to.equal(first + 3);
    });
    inWorld("can be sent at once", async ({ alice, bob, owner }) => {
      const sent = await Promise.all([alice, bob, owner].map((each) => each.sendTransaction({ to: NOBODY, value: 1n })));
      for (const tx of sent) expect(await tx.wait()).to.include({ status: 1 });
      expect(await provider.getBalance(NOBODY)).to.equal(3n);
    });
    inWorld("estimate no less than they use", async ({ token, alice }) => {
      const estimated = await token.transfer.estimateGas(alice.address, 1n);
      const { gasUsed } = await (await token.transfer(alice.address, 1n)).wait();
      expect(estimated >= gasUsed && estimated < 2n * gasUsed).to.equal(true);
    });
    inWorld("estimate calls that need more gas than they use", async ({ faults }) => {
      expect(await faults.notFor.estimateGas(500_000)).to.be.greaterThan(500_000n);
    });
    async function wallet() {
      const found = ethers.Wallet.createRandom(provider);
      await fund(found.address, 10n * ETHER);
      return { wallet: found };
    }
    const byWallet = on(wallet);
    for (const [type, fields] of [
      [0, { gasPrice: 3_000_000_000n }],
      [1, { gasPrice: 3_000_000_000n, accessList: [{ address: NOBODY, storageKeys: [ethers.ZeroHash] }] }],
      [2, { maxFeePerGas: 5_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n }],
    ]) {
      byWallet(`of type ${type} are signed by wallets`, async ({ wallet }) => {
        const tx = await wallet.sendTransaction({ type, to: NOBODY, value: 1n, ...fields });
        expect(await tx.wait()).to.include({ type, status: 1 });
        expect(await provider.getTransaction(tx.hash)).to.include({ type, nonce: 0, from: wallet.address });
      });
    }
    byWallet("of type 4 delegate an account", async ({ wallet }) => {
      const child = await deploy("Child", 3);
      const authorization = await wallet.authorize({ address: child.target, nonce: 1 });
      await (await wallet.sendTransaction({ type: 4, to: NOBODY, authorizationList: [authorization] })).wait();
      const code = ethers.concat(["0xef0100", child.target]);
      expect(await provider.getCode(wallet.address)).to.equal(code.toLowerCase());
    });
    byWallet("deploy with a wallet", async ({ wallet }) => {
      const token = await ethers.deployContract("Token", [5n], wallet);
      expect(await token.balanceOf(wallet.address)).to.equal(5n);
    });
    byWallet("with a used nonce are refused", async ({ wallet }) => {
      await (await wallet.sendTransaction({ to: NOBODY })).wait();
      expect((await failure(wallet.sendTransaction({ to: NOBODY, nonce: 0 }))).message).to.match(/nonce too low/i);
    });
    byWallet("below the base fee are refused", async ({ wallet }) => {
      const failed = await failure(wallet.sendTransaction({ to: NOBODY, maxFeePerGas: 1n, maxPriorityFeePerGas: 0n }));
      expect(failed.message).to.match(/fee/i);
    });
    byWallet("of another chain are refused", async ({ wallet }) => {
      const tx = { to: NOBODY, chainId: 5, nonce: 0, gasLimit: 21000, gasPrice: 3_000_000_000n };
      const signed = await ethers.Wallet.createRandom().signTransaction(tx);
      expect((await failure(ask("eth_sendRawTransaction", signed))).message).to.match(/chain/i);
    });
    byWallet("with more gas than a block are refused", async ({ wallet }) => {
      const { gasLimit } = await provider.getBlock("latest");
      expect((await failure(wallet.sendTransaction({ to: NOBODY, gasLimit: gasLimit + 1n }))).message).to.match(/gas/i);
    });
    const held = (title, test) => byWallet(title, async (found) => {
      await ask("evm_setAutomine", false);
      try {
        await test(found);
      } finally {
        await ask("evm_setAutomine", true);
      }
    });
    held("wait while nothing is mined", async ({ wallet }) => {
      const tx = await wallet.sendTransaction({ to: NOBODY });
      expect(await provider.getTransactionReceipt(tx.hash)).to.equal(null);
      expect(await provider.getTransaction(tx.hash)).to.include({ blockNumber: null });
      expect(await wallet.getNonce("pending")).to.equal(1);
      await mine();
      expect(await provider.getTransactionReceipt(tx.hash)).to.include({ status: 1 });
    });
    held("are replaced for a higher fee", async ({ wallet }) => {
      const fees = (each) => ({ maxFeePerGas: each * 10n ** 9n, maxPriorityFeePerGas: each * 10n ** 9n, nonce: 0 });
      const first = await wallet.sendTransaction({ to: NOBODY, ...fees(4n) });
      const low = await failure(wallet.sendTransaction({ to: NOBODY, value: 1n, ...fees(4n) }));
      expect(low.message).to.match(/underpriced/i);
      const second = await wallet.sendTransaction({ to: NOBODY, value: 2n, ...fees(8n) });
      await mine();
      expect(await provider.getTransaction(first.hash)).to.equal(null);
      expect(await provider.getTransactionReceipt(second.hash)).to.include({ status: 1 });
    });
    held("share a block, by their fees", async ({ wallet }) => {
      const [, alice, bob] = await ethers.getSigners();
      const low = await alice.sendTransaction({ to: NOBODY, maxPriorityFeePerGas: 10n ** 9n });
      const high = await bob.sendTransaction({ to: NOBODY, maxPriorityFeePerGas: 2n * 10n ** 9n });
      await mine();
      const { transactions } = await provider.getBlock("latest");
      expect(transactions).to.deep.equal([high.hash, low.hash]);
    });
    held("are dropped", async ({ wallet }) => {
      const { hash } = await wallet.sendTransaction({ to: NOBODY });
      expect(await helpers.dropTransaction(hash)).to.equal(true);
      await mine();
      expect(await provider.getTransaction(hash)).to.equal(null);
    });
    held("wait for confirmations", async ({ wallet }) => {
      const tx = await wallet.sendTransaction({ to: NOBODY });
      const waited = tx.wait(3);
      await mine(3);
      expect(await (await waited).confirmations()).to.equal(3);
    });
    inWorld("tell which storage they access", async ({ token, owner, alice }) => {
      const data = token.interface.encodeFunctionData("transfer", [alice.address, 1n]);
      const { accessList } = await ask("eth_createAccessList", { from: owner.address, to: token.target, data });
      expect(accessList.map((each) => each.storageKeys.length)).to.deep.equal([2]);
    });
    inWorld("have receipts with prices", async ({ alice }) => {
      const receipt = await (await alice.sendTransaction({ to: NOBODY })).wait();
      const { baseFeePerGas } = await provider.getBlock(receipt.blockNumber);
      expect(receipt.gasPrice).to.be.greaterThan(baseFeePerGas);
      expect(receipt.fee).to.equal(receipt.gasPrice * receipt.gasUsed);
    });
    inWorld("have a history of fees", async () => {
      await mine(4);
      const { baseFeePerGas, gasUsedRatio, reward } = await ask("eth_feeHistory", "0x3", "latest", [25, 75]);
      expect([baseFeePerGas.length, gasUsedRatio.length, reward.length]).to.deep.equal([4, 3, 3]);
    });
    inWorld("are traced", async ({ token, alice }) => {
      const { hash } = await token.transfer(alice.address, 1n);
      const { structLogs, failed } = await ask("debug_traceTransaction", hash);
      expect(failed).to.equal(false);
      expect(structLogs.some(({ op }) => op === "SSTORE")).to.equal(true);
    });
  });

  describe("accounts", () => {
    it("are ten with ether", async () => {
      const signers = await ethers.getSigners();
      expect(signers).to.have.length(10);
      expect(signers[0].address).to.equal("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
      expect(await provider.getBalance(signers[9])).to.be.greaterThan(9_000n * ETHER);
    });
    inWorld("sign texts and bytes", async ({ alice }) => {
      for (const message of ["hello", ethers.randomBytes(32)]) {
        expect(ethers.verifyMessage(message, await alice.signMessage(message))).to.equal(alice.address);
      }
    });
    inWorld("sign nested typed data", async ({ alice }) => {
      const domain = { name: "Mail" };
      const types = { Mail: [{ name: "to", type: "Person[]" }], Person: [{ name: "name", type: "string" }] };
      const value = { to: [{ name: "Alice" }, { name: "Bob" }] };
      const signature = await alice.signTypedData(domain, types, value);
      expect(ethers.verifyTypedData(domain, types, value, signature)).to.equal(alice.address);
    });
    inWorld("are impersonated", async ({ token, holder, bob }) => {
      await token.transfer(holder.target, 5n);
      await helpers.impersonateAccount(holder.target);
      await fund(holder.target);
      await token.connect(await ethers.getSigner(holder.target)).transfer(bob.address, 5n);
      await helpers.stopImpersonatingAccount(holder.target);
      expect(await token.balanceOf(bob.address)).to.equal(5n);
      const after = await ethers.getSigner(holder.target);
      expect((await failure(after.sendTransaction({ to: NOBODY, gasLimit: 21000 }))).message).to.match(/account/i);
    });
    inWorld("are impersonated as signers", async ({ probe }) => {
      const signer = await ethers.getImpersonatedSigner(NOBODY);
      expect((await probe.connect(signer).caller())[0]).to.equal(ethers.getAddress(NOBODY));
      await helpers.stopImpersonatingAccount(NOBODY);
    });
    it("get a balance", async () => {
      await helpers.setBalance(NOBODY, 42n);
      expect(await provider.getBalance(NOBODY)).to.equal(42n);
    });
    it("get a nonce", async () => {
      const { address } = ethers.Wallet.createRandom();
      await helpers.setNonce(address, 17);
      expect(await provider.getTransactionCount(address)).to.equal(17);
    });
    inWorld("get the code of a contract", async ({ token }) => {
      await helpers.setCode(NOBODY, await provider.getCode(token.target));
      expect(await token.attach(NOBODY).name()).to.equal("Token");
    });
    inWorld("get storage", async ({ token }) => {
      const slot = ethers.ZeroHash;
      await helpers.setStorageAt(token.target, slot, 99n);
      expect(BigInt(await helpers.getStorageAt(token.target, slot))).to.equal(99n);
      expect(await token.totalSupply()).to.equal(99n);
    });
    inWorld("get storage of a mapping", async ({ token, alice }) => {
      const key = ethers.AbiCoder.defaultAbiCoder().encode(["address", "uint256"], [alice.address, 1]);
      await helpers.setStorageAt(token.target, ethers.keccak256(key), 77);
      expect(await token.balanceOf(alice.address)).to.equal(77n);
    });
    inWorld("prove their storage", async ({ token }) => {
      const { storageProof, codeHash } = await ask("eth_getProof", token.target, ["0x0"], "latest");
      expect(BigInt(storageProof[0].value)).to.equal(1000n);
      expect(codeHash).to.equal(ethers.keccak256(await provider.getCode(token.target)));
    });
  });

  describe("the chain", () => {
    it("mines a block", async () => {
      const before = await time.latestBlock();
      await mine();
      expect(await time.latestBlock()).to.equal(before + 1);
    });
    it("mines many blocks", async () => {
      const before = await time.latestBlock();
      await mine(1000);
      expect(await time.latestBlock()).to.equal(before + 1000);
      expect((await provider.getBlock(before + 500)).number).to.equal(before + 500);
    });
    it("mines blocks at an interval", async () => {
      await mine(3, { interval: 60 });
      const latest = await time.latestBlock();
      const [first, second] = await Promise.all([provider.getBlock(latest - 1), provider.getBlock(latest)]);
      expect(second.timestamp - first.timestamp).to.equal(60);
    });
    it("mines up to a height", async () => {
      const wanted = (await time.latestBlock()) + 12;
      await helpers.mineUpTo(wanted);
      expect(await time.latestBlock()).to.equal(wanted);
    });
    it("moves its clock", async () => {
      const before = await time.latest();
      const moved = await time.increase(YEAR);
      expect(moved).to.be.at.least(before + YEAR);
      expect(await time.latest()).to.equal(moved);
    });
    it("moves its clock to a time", async () => {
      const wanted = (await time.latest()) + 1000;
      await time.increaseTo(wanted);
      expect((await provider.getBlock("latest")).timestamp).to.equal(wanted);
    });
    it("refuses to move its clock back", async () => {
      const past = (await time.latest()) - 10;
      await failure(time.increaseTo(past));
      expect((await failure(ask("evm_setNextBlockTimestamp", past))).message).to.match(/timestamp/i);
    });
    inWorld("gives the next block a time", async ({ owner }) => {
      const wanted = (await time.latest()) + 500;
      await time.setNextBlockTimestamp(wanted);
      await owner.sendTransaction({ to: NOBODY });
      expect(await time.latest()).to.equal(wanted);
    });
    inWorld("gives the next block a base fee", async ({ owner }) => {
      await helpers.setNextBlockBaseFeePerGas(7_000_000_000n);
      const { blockNumber } = await (await owner.sendTransaction({ to: NOBODY, maxFeePerGas: 9_000_000_000n })).wait();
      expect((await provider.getBlock(blockNumber)).baseFeePerGas).to.equal(7_000_000_000n);
    });
    inWorld("gives the next blocks a recipient of tips", async ({ owner }) => {
      await helpers.setCoinbase(NOBODY);
      await (await owner.sendTransaction({ to: NOBODY, maxPriorityFeePerGas: 10n ** 9n })).wait();
      expect((await provider.getBlock("latest")).miner).to.equal(ethers.getAddress(NOBODY));
      expect(await provider.getBalance(NOBODY)).to.equal(21000n * 10n ** 9n);
    });
    inWorld("gives the next blocks a gas limit", async ({ owner }) => {
      await helpers.setBlockGasLimit(12_345_678n);
      await (await owner.sendTransaction({ to: NOBODY, gasLimit: 21000 })).wait();
      expect((await provider.getBlock("latest")).gasLimit).to.equal(12_345_678n);
    });
    inWorld("gives the next block a random number", async ({ probe }) => {
      await helpers.setPrevRandao(77);
      await mine();
      expect(BigInt((await ask("eth_getBlockByNumber", "latest", false)).mixHash)).to.equal(77n);
      expect(await probe.randao({ blockTag: await provider.getBlockNumber() })).to.equal(77n);
    });
    it("restores snapshots more than once", async () => {
      const snapshot = await helpers.takeSnapshot();
      const height = await time.latestBlock();
      for (let round = 0; round < 2; round++) {
        await fund(NOBODY, 5n);
        await mine(2);
        await snapshot.restore();
        expect([await time.latestBlock(), await provider.getBalance(NOBODY)]).to.deep.equal([height, 0n]);
      }
    });
    it("forgets snapshots after a restored one", async () => {
      const first = await ask("evm_snapshot");
      const second = await ask("evm_snapshot");
      expect(await ask("evm_revert", first)).to.equal(true);
      expect(await ask("evm_revert", second)).to.equal(false);
      await helpers.clearSnapshots?.();
    });
    inWorld("forgets transactions after a snapshot", async ({ owner }) => {
      const snapshot = await helpers.takeSnapshot();
      const { hash } = await owner.sendTransaction({ to: NOBODY });
      await snapshot.restore();
      expect(await provider.getTransaction(hash)).to.equal(null);
    });
    it("has blocks with their transactions", async () => {
      const [owner] = await ethers.getSigners();
      const { hash, blockNumber } = await (await owner.sendTransaction({ to: NOBODY })).wait();
      const block = await provider.getBlock(blockNumber, true);
      expect(block.prefetchedTransactions.map((tx) => tx.hash)).to.deep.equal([hash]);
      expect(await provider.getBlock(block.hash)).to.deep.include({ number: blockNumber, transactions: [hash] });
    });
    it("has no block of the future", async () => {
      expect(await provider.getBlock((await time.latestBlock()) + 1000)).to.equal(null);
    });
    it("describes itself", async () => {
      const { chainId } = await provider.getNetwork();
      expect(await ask("net_version")).to.equal(String(chainId));
      expect(await ask("web3_clientVersion")).to.match(/anvil|HardhatNetwork/);
    });
    // This comes last, as it removes the fixtures.
    it("starts again", async () => {
      await helpers.reset();
      expect(await time.latestBlock()).to.equal(0);
      const [owner] = await ethers.getSigners();
      expect(await owner.getNonce()).to.equal(0);
      await helpers.clearSnapshots?.();
      expect(await (await deploy("Token", 5n)).totalSupply()).to.equal(5n);
    });
  });
};
