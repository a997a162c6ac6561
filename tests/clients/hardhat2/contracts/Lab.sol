// SPDX-License-Identifier: BSD-3-Clause
pragma solidity ^0.8.30;

import "hardhat/console.sol";

/// Fails in each way that Solidity has.
contract Faults {
    enum Side { Left, Right }
    struct Place { uint256 x; string label; }

    uint256[] public items;
    uint256 public writes;

    error Empty();
    error Detailed(address who, uint256[] numbers, Place place);

    function plain() public pure { revert(); }
    function reason() public pure { revert("a reason"); }
    function unicode_() public pure { revert(unicode"Grüße 🦊"); }
    function empty() public pure { revert Empty(); }
    function detailed() public view {
        uint256[] memory numbers = new uint256[](2);
        numbers[1] = 7;
        revert Detailed(msg.sender, numbers, Place(3, "here"));
    }
    function asserts(uint256 x) public pure { assert(x > 1000); }
    function overflows(uint256 x) public pure returns (uint256) { return x - 1000; }
    function divides(uint256 x) public pure returns (uint256) { return 1 / (x - x); }
    function converts(uint256 x) public pure returns (Side) { return Side(x + 2); }
    function pops() public { items.pop(); }
    function reads(uint256 x) public view returns (uint256) { return items[x]; }
    function allocates(uint256 x) public pure returns (uint256) { return new uint256[](x + 2 ** 64).length; }
    function invalid() public pure { assembly { invalid() } }
    function consumes() public { while (true) writes++; }
    function nested() public view { this.reason(); }
    function caught() public view returns (string memory) {
        try this.reason() { return ""; } catch Error(string memory text) { return text; }
    }
    function caughtPanic() public view returns (uint256) {
        try this.asserts(1) { return 0; } catch Panic(uint256 code) { return code; }
    }
    function caughtData() public view returns (bytes memory) {
        try this.empty() { return ""; } catch (bytes memory data) { return data; }
    }
    /// Fails when it is executed, and not when its gas is estimated.
    function notFor(uint256 gas_) public view { require(gasleft() > gas_, "too little gas"); }
}

/// Holds ether until a time.
contract Vault {
    address public owner = msg.sender;
    uint256 public immutable opens;
    mapping(address => uint256) public deposits;

    event Deposited(address indexed from, uint256 amount, bytes data);
    event Withdrawn(address indexed to, uint256 amount);

    error TooEarly(uint256 now_, uint256 opens);

    modifier onlyOwner() {
        require(msg.sender == owner, "not the owner");
        _;
    }

    constructor(uint256 opens_) payable { opens = opens_; }
    receive() external payable { emit Deposited(msg.sender, msg.value, ""); }
    fallback() external payable { emit Deposited(msg.sender, msg.value, msg.data); }
    function deposit() public payable { deposits[msg.sender] += msg.value; }
    function withdraw() public {
        if (block.timestamp < opens) revert TooEarly(block.timestamp, opens);
        uint256 amount = deposits[msg.sender];
        deposits[msg.sender] = 0;
        payable(msg.sender).transfer(amount);
        emit Withdrawn(msg.sender, amount);
    }
    function hand(address to) public onlyOwner { owner = to; }
    function pay(address payable to, uint256 amount) public onlyOwner { to.transfer(amount); }
}

contract Child {
    uint256 public number;
    address public immutable maker = msg.sender;
    constructor(uint256 number_) payable { number = number_; }
    function set(uint256 number_) public { number = number_; }
    function destroy(address payable to) public { selfdestruct(to); }
}

contract Factory {
    event Made(address child);

    function make(uint256 number) public payable returns (address made) {
        made = address(new Child{value: msg.value}(number));
        emit Made(made);
    }
    function salted(bytes32 salt, uint256 number) public returns (address made) {
        made = address(new Child{salt: salt}(number));
        emit Made(made);
    }
    function predicted(bytes32 salt, uint256 number) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(Child).creationCode, abi.encode(number)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, code)))));
    }
    function clone(address target) public returns (address made) {
        bytes memory code = abi.encodePacked(
            hex"3d602d80600a3d3981f3363d3d373d3d3d363d73", target, hex"5af43d82803e903d91602b57fd5bf3"
        );
        assembly { made := create(0, add(code, 32), mload(code)) }
        emit Made(made);
    }
    function makeAndDestroy(address payable to) public payable {
        Child child = new Child{value: msg.value}(1);
        emit Made(address(child));
        child.destroy(to);
    }
}

/// Is linked, as its functions are external.
library Statistics {
    struct Summary { uint256 sum; uint256 most; }

    function summary(uint256[] memory numbers) external pure returns (Summary memory found) {
        for (uint256 index = 0; index < numbers.length; index++) {
            found.sum += numbers[index];
            if (numbers[index] > found.most) found.most = numbers[index];
        }
    }
}

contract Linked {
    function summary(uint256[] calldata numbers) external pure returns (Statistics.Summary memory) {
        return Statistics.summary(numbers);
    }
}

/// Calls others, and reads what the chain tells a contract.
contract Probe {
    uint256 public number;
    uint256 public transientSum;
    bytes32 public last;

    struct Environment {
        uint256 height; uint256 time; uint256 baseFee; uint256 chain; address coinbase; uint256 gasLimit;
    }

    event Anonymous(uint256 value) anonymous;
    event Text(string indexed hashed, string plain, bytes32 indexed word, int256 number);

    function environment() public view returns (Environment memory) {
        return Environment(block.number, block.timestamp, block.basefee, block.chainid, block.coinbase, block.gaslimit);
    }
    function parent() public view returns (bytes32) { return blockhash(block.number - 1); }
    function keep() public { last = blockhash(block.number - 1); }
    function caller() public view returns (address, address) { return (msg.sender, tx.origin); }
    function price() public view returns (uint256) { return tx.gasprice; }
    function randao() public view returns (uint256) { return block.prevrandao; }
    function codeHash(address of_) public view returns (bytes32) { return of_.codehash; }
    function call(address to, bytes calldata data) public payable returns (bool ok, bytes memory answer) {
        (ok, answer) = to.call{value: msg.value}(data);
    }
    function staticCall(address to, bytes calldata data) public view returns (bool ok, bytes memory answer) {
        (ok, answer) = to.staticcall(data);
    }
    function delegate(address to, bytes calldata data) public returns (bool ok, bytes memory answer) {
        (ok, answer) = to.delegatecall(data);
    }
    function bubble(address to, bytes calldata data) public {
        (bool ok, bytes memory answer) = to.call(data);
        if (!ok) assembly { revert(add(answer, 32), mload(answer)) }
    }
    function writeTransient(uint256 value) public {
        assembly { tstore(0, add(tload(0), value)) tstore(0, add(tload(0), value)) sstore(transientSum.slot, tload(0)) }
    }
    function copy(bytes memory data) public pure returns (bytes memory copied) {
        copied = new bytes(data.length);
        assembly { mcopy(add(copied, 32), add(data, 32), mload(data)) }
    }
    function digests(bytes calldata data) public pure returns (bytes32, bytes32, bytes20) {
        return (keccak256(data), sha256(data), ripemd160(data));
    }
    function power(uint256 base, uint256 exponent, uint256 modulus) public view returns (uint256 found) {
        (, bytes memory answer) = address(5).staticcall(abi.encode(32, 32, 32, base, exponent, modulus));
        return abi.decode(answer, (uint256));
    }
    function recover(bytes32 hash, uint8 v, bytes32 r, bytes32 s) public pure returns (address) {
        return ecrecover(hash, v, r, s);
    }
    function emitAnonymous(uint256 value) public { emit Anonymous(value); }
    function emitText(string calldata text, int256 value) public {
        emit Text(text, text, bytes32(bytes(text)), value);
    }
    function log(string calldata text, uint256 value) public {
        console.log("%s: %s", text, value);
        number = value;
    }
    function logged(address who, bool flag) public view returns (bool) {
        console.log(who, flag);
        console.logBytes32(bytes32(uint256(1)));
        return flag;
    }
}
