// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import {Counter} from "../evm/Counter.sol";

/// The cheat codes of forge that are used here.
interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
    function envAddress(string calldata name) external view returns (address);
    function rollFork(uint256 height) external;
}

Vm constant VM = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

/// Is deployed by forge before the script's own contracts, as its function is external.
library Doubles {
    function doubled(uint256 number) external pure returns (uint256) {
        return 2 * number;
    }
}

contract Maker {
    Counter public made;

    function make(uint256 first) external payable {
        made = new Counter(Doubles.doubled(first));
    }
}

/// Deploys by CREATE and by the CREATE2 deployer, calls what it deployed, and sends ether.
contract Deploy {
    bool public constant IS_SCRIPT = true;

    function run(bytes32 salt, address payable to) external returns (address, address, uint256) {
        VM.startBroadcast();
        Counter plain = new Counter(7);
        Counter salted = new Counter{salt: salt}(8);
        plain.add(5);
        salted.add(2);
        Maker maker = new Maker();
        maker.make(21);
        to.transfer(1 ether);
        VM.stopBroadcast();
        require(plain.total() == 12 && salted.total() == 10, "wrong totals");
        require(maker.made().total() == 42, "wrong total");
        return (address(plain), address(salted), to.balance);
    }
}

/// Runs on a fork of the chain to which the script has deployed.
contract Fork {
    Counter private counter = Counter(VM.envAddress("COUNTER"));

    function testReadsTheState() external view {
        require(counter.total() == 12, "wrong total");
    }

    function testChangesTheFork() external {
        counter.add(30);
        require(counter.total() == 42, "wrong total");
    }

    function testReadsAnOlderState() external {
        VM.rollFork(0);
        require(address(counter).code.length == 0, "deployed in the genesis");
    }
}
