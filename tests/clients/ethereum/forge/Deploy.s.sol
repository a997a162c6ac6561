// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import {Counter} from "../evm/Counter.sol";

/// The cheat codes of forge that are used here.
interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// Deploys by CREATE and by the CREATE2 deployer, calls what it deployed, and sends ether.
contract Deploy {
    Vm private constant VM = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    bool public constant IS_SCRIPT = true;

    function run(bytes32 salt, address payable to) external returns (address, address, uint256) {
        VM.startBroadcast();
        Counter plain = new Counter(7);
        Counter salted = new Counter{salt: salt}(8);
        plain.add(5);
        salted.add(2);
        to.transfer(1 ether);
        VM.stopBroadcast();
        require(plain.total() == 12 && salted.total() == 10, "wrong totals");
        return (address(plain), address(salted), to.balance);
    }
}
