// Command geth runs transactions in geth's EVM and writes what tracers of geth report, as JSON.
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
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/tracers"
	_ "github.com/ethereum/go-ethereum/eth/tracers/js"
	_ "github.com/ethereum/go-ethereum/eth/tracers/native"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/tests"
)

type request struct {
	ChainID      uint64             `json:"chainId"`
	Alloc        types.GenesisAlloc `json:"alloc"`
	Transactions []hexutil.Bytes    `json:"transactions"`
	// Tracers are names or code, each with its options.
	Tracers []struct {
		Tracer string          `json:"tracer"`
		Config json.RawMessage `json:"tracerConfig"`
	} `json:"tracers"`
}

// reply has a list for each transaction, with a trace of each tracer.
type reply [][]outcome

type outcome struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
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
) outcome {
	at := block()
	message := must(core.TransactionToMessage(tx, types.LatestSigner(config), at.BaseFee))
	evm := vm.NewEVM(at, state.NewHookedState(db, tracer.Hooks), config, vm.Config{Tracer: tracer.Hooks})
	defer evm.Release()
	db.SetTxContext(tx.Hash(), index, uint32(index+1))
	gas := core.NewGasPool(tx.Gas())
	must2(core.ApplyTransactionWithEVM(
		context.Background(), message, gas, db, at.BlockNumber, common.Hash{}, at.Time, tx, evm,
	))
	result, err := tracer.GetResult()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Result: result}
}

func must2[A, B any](first A, _ B, err error) A {
	return must(first, err)
}

func main() {
	var asked request
	must(0, json.NewDecoder(os.Stdin).Decode(&asked))
	config := *params.MergedTestChainConfig
	config.ChainID = new(big.Int).SetUint64(asked.ChainID)
	made := tests.MakePreState(rawdb.NewMemoryDatabase(), asked.Alloc, false, rawdb.HashScheme)
	defer made.Close()
	db, found := made.StateDB, reply{}
	for index, raw := range asked.Transactions {
		tx, before := new(types.Transaction), db.Copy()
		must(0, tx.UnmarshalBinary(raw))
		// The outcome without a tracer is the state for the next transaction.
		trace(&tracers.Tracer{Hooks: new(tracing.Hooks), GetResult: func() (json.RawMessage, error) {
			return nil, nil
		}}, &config, db, tx, index)
		var outcomes []outcome
		for _, each := range asked.Tracers {
			place := tracers.Context{BlockHash: common.Hash{1}, TxIndex: index, TxHash: tx.Hash()}
			tracer, err := tracers.DefaultDirectory.New(each.Tracer, &place, each.Config, &config)
			if err != nil {
				outcomes = append(outcomes, outcome{Error: err.Error()})
				continue
			}
			outcomes = append(outcomes, trace(tracer, &config, before.Copy(), tx, index))
		}
		found = append(found, outcomes)
	}
	must(0, json.NewEncoder(os.Stdout).Encode(found))
}
