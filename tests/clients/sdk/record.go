package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"cosmossdk.io/log"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	serverconfig "github.com/cosmos/cosmos-sdk/server/config"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/gogoproto/proto"
)

// The recording's form is told in tests/clients/record_bank.py.

type recording struct {
	ChainID   string              `json:"chain_id"`
	Genesis   json.RawMessage     `json:"genesis"`
	Accounts  map[string]owner    `json:"accounts"`
	Init      json.RawMessage     `json:"init"`
	Scenarios []*scenarioRecord   `json:"scenarios"`
	Queries   []queryRecord       `json:"queries"`
	Gas       map[string]gasTable `json:"gas"`
}

type owner struct {
	Mnemonic string `json:"mnemonic,omitempty"`
	Address  string `json:"address"`
	PubKey   []byte `json:"pub_key"`
}

type scenarioRecord struct {
	Name   string        `json:"name"`
	Blocks []blockRecord `json:"blocks"`
	State  stateRecord   `json:"state"`
}

type blockRecord struct {
	Height    int64             `json:"height"`
	Time      time.Time         `json:"time"`
	Txs       []txRecord        `json:"txs"`
	Events    []eventRecord     `json:"events"`
	Updates   []json.RawMessage `json:"validator_updates"`
	GasParams json.RawMessage   `json:"consensus_param_updates"`
}

type txRecord struct {
	Name    string        `json:"name"`
	Bytes   []byte        `json:"bytes"`
	Hash    string        `json:"hash,omitempty"`
	Check   *resultRecord `json:"check,omitempty"`
	Deliver *resultRecord `json:"deliver"`
}

type resultRecord struct {
	Code      uint32        `json:"code"`
	Codespace string        `json:"codespace"`
	Log       string        `json:"log"`
	Info      string        `json:"info"`
	Data      []byte        `json:"data"`
	GasWanted int64         `json:"gas_wanted"`
	GasUsed   int64         `json:"gas_used"`
	Events    []eventRecord `json:"events"`
}

type eventRecord struct {
	Type       string            `json:"type"`
	Attributes []attributeRecord `json:"attributes"`
}

type attributeRecord struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Index bool   `json:"index"`
}

type stateRecord struct {
	Accounts []json.RawMessage            `json:"accounts"`
	Balances map[string]map[string]string `json:"balances"`
	Supply   map[string]string            `json:"supply"`
}

func eventsOf(found []abci.Event) []eventRecord {
	events := make([]eventRecord, 0, len(found))
	for _, each := range found {
		event := eventRecord{Type: each.Type, Attributes: []attributeRecord{}}
		for _, attribute := range each.Attributes {
			event.Attributes = append(event.Attributes,
				attributeRecord{attribute.Key, attribute.Value, attribute.Index})
		}
		events = append(events, event)
	}
	return events
}

func recordBank(out io.Writer) error {
	world, err := newWorld()
	if err != nil {
		return err
	}
	recorded := recording{
		ChainID:  recordedChain,
		Accounts: world.owners(),
		Gas:      map[string]gasTable{},
	}
	recorded.Genesis, err = cmtjson.Marshal(world.genesis)
	if err != nil {
		return err
	}
	for _, each := range scenarios() {
		made, err := world.ledger(each.name)
		if err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}
		if recorded.Init == nil {
			recorded.Init = made.begun
		}
		made.block()
		each.run(made)
		if made.record.State, err = made.state(); err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}
		recorded.Scenarios = append(recorded.Scenarios, made.record)
		if each.ask != nil {
			recorded.Queries = append(recorded.Queries, each.ask(made)...)
		}
	}
	for name, each := range gasCases() {
		table, err := world.gas(each)
		if err != nil {
			return fmt.Errorf("gas of %s: %w", name, err)
		}
		recorded.Gas[name] = table
	}
	written := json.NewEncoder(out)
	written.SetEscapeHTML(false)
	written.SetIndent("", " ")
	return written.Encode(recorded)
}

// ledger is a chain in memory that is given one block after the other, and writes down what it
// answers.
type ledger struct {
	*chain
	world  *world
	first  []abci.ValidatorUpdate
	begun  json.RawMessage
	height int64
	record *scenarioRecord
}

func (w *world) ledger(name string, settings ...func(*chain)) (*ledger, error) {
	made, err := wired(w.options, log.NewNopLogger(), dbm.NewMemDB(),
		baseapp.SetChainID(w.genesis.ChainID), baseapp.SetMinGasPrices("0stake"))
	if err != nil {
		return nil, err
	}
	for _, set := range settings {
		set(made)
	}
	empty := client.Context{}.WithCodec(made.codec).
		WithInterfaceRegistry(made.registry).WithTxConfig(made.txs).WithLegacyAmino(made.amino)
	made.RegisterTxService(empty)
	made.RegisterNodeService(empty, *serverconfig.DefaultConfig())
	if err := made.Load(true); err != nil {
		return nil, err
	}
	params := w.genesis.ConsensusParams.ToProto()
	begun, err := made.InitChain(&abci.RequestInitChain{
		ChainId:         w.genesis.ChainID,
		InitialHeight:   w.genesis.InitialHeight,
		Time:            w.genesis.GenesisTime,
		ConsensusParams: &params,
		AppStateBytes:   w.genesis.AppState,
	})
	if err != nil {
		return nil, err
	}
	begunText, err := cmtjson.Marshal(begun)
	record := &scenarioRecord{Name: name}
	return &ledger{chain: made, world: w, first: begun.Validators, begun: begunText,
		height: w.genesis.InitialHeight - 1, record: record}, err
}

func (l *ledger) time(height int64) time.Time {
	return l.world.genesis.GenesisTime.Add(time.Duration(height) * 5 * time.Second)
}

// sent is a transaction and the name of its case.
type sent struct {
	name string
	raw  []byte
}

// block checks the transactions one after the other, and makes a block of all of them.
func (l *ledger) block(txs ...sent) {
	block := blockRecord{Time: l.time(l.height + 1)}
	l.deliver(&block, &abci.RequestFinalizeBlock{ProposerAddress: l.world.proposer}, txs)
	l.record.Blocks = append(l.record.Blocks, block)
}

// deliver makes the next block, of the record's time, and writes into the record what comes of it.
func (l *ledger) deliver(
	block *blockRecord, request *abci.RequestFinalizeBlock, txs []sent,
) *abci.ResponseFinalizeBlock {
	l.height++
	block.Height, block.Txs = l.height, []txRecord{}
	for _, each := range txs {
		block.Txs = append(block.Txs, txRecord{
			Name:  each.name,
			Bytes: each.raw,
			Hash:  fmt.Sprintf("%X", sha256.Sum256(each.raw)),
			Check: l.check(each.raw),
		})
		request.Txs = append(request.Txs, each.raw)
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "block %d", l.height))
	request.Height, request.Time, request.Hash = l.height, block.Time, hash[:]
	found, err := l.FinalizeBlock(request)
	if err != nil {
		panic(err)
	}
	if _, err := l.Commit(); err != nil {
		panic(err)
	}
	for at, each := range found.TxResults {
		block.Txs[at].Deliver = &resultRecord{
			each.Code, each.Codespace, untraced(each.Log), each.Info, each.Data,
			each.GasWanted, each.GasUsed, eventsOf(each.Events)}
	}
	block.Events = eventsOf(found.Events)
	block.Updates = []json.RawMessage{}
	for _, each := range found.ValidatorUpdates {
		block.Updates = append(block.Updates, must(cmtjson.Marshal(each)))
	}
	block.GasParams = must(cmtjson.Marshal(found.ConsensusParamUpdates))
	return found
}

func (l *ledger) check(raw []byte) *resultRecord {
	found, err := l.CheckTx(&abci.RequestCheckTx{Tx: raw, Type: abci.CheckTxType_New})
	if err != nil {
		panic(err)
	}
	return &resultRecord{
		found.Code, found.Codespace, untraced(found.Log), found.Info, found.Data,
		found.GasWanted, found.GasUsed, eventsOf(found.Events)}
}

// modulesFolder is where the program was built.
var modulesFolder = regexp.MustCompile(`\[/[^\]]*/pkg/mod/`)

// untraced leaves out what no two programs have in common: the stack of a panic, and where the
// program was built.
func untraced(log string) string {
	text, _, found := strings.Cut(log, "\nstack:\n")
	if found {
		text += "\nstack:\n"
	}
	return modulesFolder.ReplaceAllString(text, "[")
}

func (l *ledger) asked(path string, request proto.Message, reply codec.ProtoMarshaler) error {
	found, err := l.Query(context.Background(),
		&abci.RequestQuery{Path: path, Data: must(proto.Marshal(request))})
	if err != nil {
		return err
	}
	if found.Code != 0 {
		return fmt.Errorf("%s: %s", path, found.Log)
	}
	return l.codec.Unmarshal(found.Value, reply)
}

// account is what the chain says of an owner, zero for none.
func (l *ledger) account(address sdk.AccAddress) (number, sequence uint64) {
	var found authtypes.QueryAccountResponse
	if l.asked("/cosmos.auth.v1beta1.Query/Account",
		&authtypes.QueryAccountRequest{Address: address.String()}, &found) != nil {
		return 0, 0
	}
	var account sdk.AccountI
	if err := l.registry.UnpackAny(found.Account, &account); err != nil {
		panic(err)
	}
	return account.GetAccountNumber(), account.GetSequence()
}

func (l *ledger) state() (stateRecord, error) {
	all := &query.PageRequest{Limit: 1000}
	state := stateRecord{Balances: map[string]map[string]string{}}
	var accounts authtypes.QueryAccountsResponse
	err := l.asked("/cosmos.auth.v1beta1.Query/Accounts",
		&authtypes.QueryAccountsRequest{Pagination: all}, &accounts)
	if err != nil {
		return state, err
	}
	for _, each := range accounts.Accounts {
		var account sdk.AccountI
		if err := l.registry.UnpackAny(each, &account); err != nil {
			return state, err
		}
		text, err := l.codec.MarshalInterfaceJSON(account)
		if err != nil {
			return state, err
		}
		state.Accounts = append(state.Accounts, text)
		address := account.GetAddress().String()
		var balances banktypes.QueryAllBalancesResponse
		err = l.asked("/cosmos.bank.v1beta1.Query/AllBalances",
			&banktypes.QueryAllBalancesRequest{Address: address, Pagination: all}, &balances)
		if err != nil {
			return state, err
		}
		state.Balances[address] = amounts(balances.Balances)
	}
	var supply banktypes.QueryTotalSupplyResponse
	err = l.asked("/cosmos.bank.v1beta1.Query/TotalSupply",
		&banktypes.QueryTotalSupplyRequest{Pagination: all}, &supply)
	state.Supply = amounts(supply.Supply)
	return state, err
}

func amounts(coins sdk.Coins) map[string]string {
	found := map[string]string{}
	for _, each := range coins {
		found[each.Denom] = each.Amount.String()
	}
	return found
}

func must[T any](found T, err error) T {
	if err != nil {
		panic(err)
	}
	return found
}
