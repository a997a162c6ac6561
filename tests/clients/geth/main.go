// Command geth runs transactions in geth's EVM and writes what a tracer of geth reports, as JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"math/big"
	"os"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/tracers"
	_ "github.com/ethereum/go-ethereum/eth/tracers/native"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/tests"
)

type request struct {
	ChainID      uint64             `json:"chainId"`
	Alloc        types.GenesisAlloc `json:"alloc"`
	Transactions []hexutil.Bytes    `json:"transactions"`
	Tracer       string             `json:"tracer"`
	Configs      []json.RawMessage  `json:"configs"`
	Invalid      []json.RawMessage  `json:"invalid"`
}

type reply struct {
	// Traces has a list for each transaction, with a trace for each config.
	Traces [][]json.RawMessage `json:"traces"`
	// Errors has the error of each invalid config.
	Errors []string `json:"errors"`
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// block is the block in which all transactions run, by the rules of Osaka.
func block() vm.BlockContext {
	return vm.BlockContext{
		CanTransfer: core.CanTransfer,
		Transfer:    core.Transfer,
		GetHash:     func(uint64) common.Hash { return common.Hash{} },
		GasLimit:    30_000_000,
		BlockNumber: big.NewInt(2),
		Difficulty:  new(big.Int),
		BaseFee:     big.NewInt(params.GWei),
		BlobBaseFee: big.NewInt(1),
		Random:      new(common.Hash),
	}
}

func trace(
	tracer *tracers.Tracer, config *params.ChainConfig, db *state.StateDB, tx *types.Transaction, index int,
) json.RawMessage {
	at := block()
	message := must(core.TransactionToMessage(tx, types.LatestSigner(config), at.BaseFee))
	evm := vm.NewEVM(at, state.NewHookedState(db, tracer.Hooks), config, vm.Config{Tracer: tracer.Hooks})
	defer evm.Release()
	db.SetTxContext(tx.Hash(), index, uint32(index+1))
	gas := core.NewGasPool(tx.Gas())
	must2(core.ApplyTransactionWithEVM(
		context.Background(), message, gas, db, at.BlockNumber, common.Hash{}, at.Time, tx, evm,
	))
	return must(tracer.GetResult())
}

func must2[A, B any](first A, _ B, err error) A {
	return must(first, err)
}

func main() {
	var asked request
	must(0, json.NewDecoder(os.Stdin).Decode(&asked))
	config := *params.MergedTestChainConfig
	config.ChainID = new(big.Int).SetUint64(asked.ChainID)
	tracer := func(options json.RawMessage) (*tracers.Tracer, error) {
		return tracers.DefaultDirectory.New(asked.Tracer, new(tracers.Context), options, &config)
	}
	made := tests.MakePreState(rawdb.NewMemoryDatabase(), asked.Alloc, false, rawdb.HashScheme)
	defer made.Close()
	db, found := made.StateDB, reply{}
	for index, raw := range asked.Transactions {
		tx, before := new(types.Transaction), db
		must(0, tx.UnmarshalBinary(raw))
		var traces []json.RawMessage
		for _, options := range asked.Configs {
			db = before.Copy()
			traces = append(traces, trace(must(tracer(options)), &config, db, tx, index))
		}
		found.Traces = append(found.Traces, traces)
	}
	for _, options := range asked.Invalid {
		_, err := tracer(options)
		if err == nil {
			log.Fatalf("%s is valid", options)
		}
		found.Errors = append(found.Errors, err.Error())
	}
	must(0, json.NewEncoder(os.Stdout).Encode(found))
}
