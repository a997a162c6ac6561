package main

import (
	"encoding/hex"

	storetypes "cosmossdk.io/store/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
)

// gasTable is what one transaction pays for, in order, and what it reads and writes meanwhile.
type gasTable struct {
	Bytes []byte `json:"bytes"`
	Total int64  `json:"gas_used"`
	Steps []step `json:"steps"`
}

type step struct {
	Gas   *uint64 `json:"gas,omitempty"`
	For   string  `json:"for,omitempty"`
	Op    string  `json:"op,omitempty"`
	Store string  `json:"store,omitempty"`
	Key   string  `json:"key,omitempty"`
	Value *string `json:"value,omitempty"`
	End   string  `json:"end,omitempty"`
}

// steps are written down between the ante handler and the post handler.
type steps struct {
	found []step
	open  bool
	// done has the steps of each transaction that reached the post handler, by its bytes.
	done map[string][]step
}

func (s *steps) add(each step) {
	if s.open {
		s.found = append(s.found, each)
	}
}

type tracedMeter struct {
	storetypes.GasMeter
	to *steps
}

func (m tracedMeter) ConsumeGas(amount storetypes.Gas, descriptor string) {
	m.to.add(step{Gas: &amount, For: descriptor})
	m.GasMeter.ConsumeGas(amount, descriptor)
}

// AnteHandle stands behind the decorator that makes the meter.
func (s *steps) AnteHandle(
	ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler,
) (sdk.Context, error) {
	if ctx.IsCheckTx() {
		return next(ctx, tx, simulate)
	}
	s.found, s.open = nil, true
	return next(ctx.WithGasMeter(tracedMeter{ctx.GasMeter(), s}), tx, simulate)
}

func (s *steps) traced(made *chain) {
	made.SetCMS(tracedCommit{made.CommitMultiStore(), s})
	made.SetAnteHandler(sdk.ChainAnteDecorators(
		ante.NewSetUpContextDecorator(),
		s,
		ante.NewExtensionOptionsDecorator(nil),
		ante.NewValidateBasicDecorator(),
		ante.NewTxTimeoutHeightDecorator(),
		ante.NewValidateMemoDecorator(made.accounts),
		ante.NewConsumeGasForTxSizeDecorator(made.accounts),
		ante.NewDeductFeeDecorator(made.accounts, made.coins, nil, nil),
		ante.NewSetPubKeyDecorator(made.accounts),
		ante.NewValidateSigCountDecorator(made.accounts),
		ante.NewSigGasConsumeDecorator(made.accounts, ante.DefaultSigVerificationGasConsumer),
		ante.NewSigVerificationDecorator(made.accounts, made.txs.SignModeHandler()),
		ante.NewIncrementSequenceDecorator(made.accounts),
	))
	made.SetPostHandler(func(ctx sdk.Context, _ sdk.Tx, _, _ bool) (sdk.Context, error) {
		if !ctx.IsCheckTx() {
			s.open = false
			if s.done != nil {
				s.done[string(ctx.TxBytes())] = s.found
			}
		}
		return ctx, nil
	})
}

type tracedCommit struct {
	storetypes.CommitMultiStore
	to *steps
}

func (c tracedCommit) CacheMultiStore() storetypes.CacheMultiStore {
	return tracedCache{c.CommitMultiStore.CacheMultiStore(), c.to}
}

type cached storetypes.CacheMultiStore

type tracedCache struct {
	cached
	to *steps
}

func (c tracedCache) CacheMultiStore() storetypes.CacheMultiStore {
	return tracedCache{c.cached.CacheMultiStore(), c.to}
}

func (c tracedCache) GetKVStore(key storetypes.StoreKey) storetypes.KVStore {
	return tracedStore{c.cached.GetKVStore(key), key.Name(), c.to}
}

type tracedStore struct {
	storetypes.KVStore
	name string
	to   *steps
}

func (s tracedStore) note(op string, key, value []byte) {
	each := step{Op: op, Store: s.name, Key: hex.EncodeToString(key)}
	if value != nil {
		text := hex.EncodeToString(value)
		each.Value = &text
	}
	s.to.add(each)
}

func (s tracedStore) Get(key []byte) []byte {
	value := s.KVStore.Get(key)
	s.note("get", key, value)
	return value
}

func (s tracedStore) Has(key []byte) bool {
	s.note("has", key, nil)
	return s.KVStore.Has(key)
}

func (s tracedStore) Set(key, value []byte) {
	s.note("set", key, value)
	s.KVStore.Set(key, value)
}

func (s tracedStore) Delete(key []byte) {
	s.note("delete", key, nil)
	s.KVStore.Delete(key)
}

func (s tracedStore) Iterator(start, end []byte) storetypes.Iterator {
	s.to.add(step{Op: "iterate", Store: s.name,
		Key: hex.EncodeToString(start), End: hex.EncodeToString(end)})
	return s.KVStore.Iterator(start, end)
}

func (s tracedStore) ReverseIterator(start, end []byte) storetypes.Iterator {
	s.to.add(step{Op: "iterate backwards", Store: s.name,
		Key: hex.EncodeToString(start), End: hex.EncodeToString(end)})
	return s.KVStore.ReverseIterator(start, end)
}

// gas is the table of a transaction in the second block of a chain of its own.
func (w *world) gas(make func(*ledger) draft) (gasTable, error) {
	var found steps
	made, err := w.ledger("", found.traced)
	if err != nil {
		return gasTable{}, err
	}
	plain, err := w.ledger("")
	if err != nil {
		return gasTable{}, err
	}
	made.block()
	plain.block()
	raw := made.sign(make(made))
	made.block(sent{"", raw})
	plain.block(sent{"", raw})
	result := made.record.Blocks[1].Txs[0].Deliver
	usual := plain.record.Blocks[1].Txs[0].Deliver
	if result.GasUsed != usual.GasUsed || result.Log != usual.Log {
		panic("the traced application differs: " + result.Log + " / " + usual.Log)
	}
	return gasTable{Bytes: raw, Total: result.GasUsed, Steps: found.found}, nil
}
