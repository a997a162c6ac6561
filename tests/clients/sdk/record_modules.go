package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"strings"
	"time"

	"cosmossdk.io/log"
	"cosmossdk.io/math"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/crypto/ed25519"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	cryptocodec "github.com/cosmos/cosmos-sdk/crypto/codec"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	genutiltypes "github.com/cosmos/cosmos-sdk/x/genutil/types"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/gogoproto/proto"
	"golang.org/x/sync/errgroup"
)

// The recording's form is documented in tests/clients/record_modules.py.

type modulesRecording struct {
	chainRecording
	ChainID    string               `json:"chain_id"`
	Accounts   map[string]owner     `json:"accounts"`
	Validators map[string]consensus `json:"validators"`
	Queries    []queryRecord        `json:"queries"`
	Refused    *refusal             `json:"refused"`
	Imported   *chainRecording      `json:"imported"`
	Gas        map[string]gasTable  `json:"gas"`
}

type chainRecording struct {
	Genesis json.RawMessage       `json:"genesis"`
	Init    json.RawMessage       `json:"init"`
	Blocks  []modulesBlock        `json:"blocks"`
	States  map[int64]modulesDump `json:"states"`
	// Governor is who does what only governance may do, if there is one.
	Governor string `json:"governor,omitempty"`
}

type consensus struct {
	Seed     string `json:"seed"`
	PubKey   []byte `json:"pub_key"`
	Address  string `json:"address"`
	Operator string `json:"operator"`
}

type modulesBlock struct {
	blockRecord
	Proposer           string              `json:"proposer_address"`
	NextValidatorsHash string              `json:"next_validators_hash"`
	Votes              [][3]any            `json:"votes"`
	Misbehavior        []misbehaviorRecord `json:"misbehavior"`
	AppHash            string              `json:"app_hash"`
}

type misbehaviorRecord struct {
	Type       string    `json:"type"`
	Address    string    `json:"address"`
	Power      int64     `json:"power"`
	Height     int64     `json:"height"`
	Time       time.Time `json:"time"`
	TotalPower int64     `json:"total_power"`
}

// modulesDump is the exported genesis state of the modules, and what it does not contain.
type modulesDump struct {
	Export  map[string]json.RawMessage `json:"export"`
	Pool    json.RawMessage            `json:"pool"`
	Rewards map[string]json.RawMessage `json:"rewards"`
}

type refusal struct {
	Misbehavior misbehaviorRecord `json:"misbehavior"`
	Error       string            `json:"error"`
}

const (
	unbondingTime = 6 * time.Hour
	jailTime      = 10 * time.Minute
	blockTime     = 5 * time.Second
)

// stakes are the validators of the genesis.
var stakes = []struct {
	name                       string
	tokens                     int64
	rate, maxRate, maxRateStep string
}{
	{"alice", 50_000_000_000, "0.1", "0.2", "0.01"},
	{"bob", 40_000_000_007, "0.055", "1", "0.05"},
	{"carol", 30_000_999_999, "0", "0.333333333333333333", "0.1"},
	{"dave", 20_000_000_000, "1", "1", "0"},
}

// network is a chain that is given the votes of its validators as CometBFT gives them.
type network struct {
	*ledger
	random          *rand.Rand
	at              time.Time
	wait            time.Duration
	last, now, next *cmttypes.ValidatorSet
	absent, nils    map[string]bool
	proven          []abci.Misbehavior
	queued          []sent
	sequences       map[string]int64
	recorded        *modulesRecording
}

func recordModules(ctx context.Context, given options, out io.Writer) error {
	world, err := newModulesWorld(options{rewards: true, slashing: true})
	if err != nil {
		return err
	}
	made, err := newNetwork(world)
	if err != nil {
		return err
	}
	made.play()
	made.recorded.Queries = made.ask()
	if made.recorded.Imported, err = made.imported(120); err != nil {
		return err
	}
	made.recorded.Refused = made.refuse()
	if made.recorded.Gas, err = made.gasTables(); err != nil {
		return err
	}
	return made.print(ctx, given, out)
}

// print writes the recording, and serves the REST gateway then, if it has an address.
func (n *network) print(ctx context.Context, given options, out io.Writer) error {
	written := json.NewEncoder(out)
	written.SetEscapeHTML(false)
	written.SetIndent("", " ")
	if err := written.Encode(n.recorded); err != nil || given.api == "" {
		return err
	}
	asked := client.Context{}.
		WithChainID(n.recorded.ChainID).
		WithCodec(n.codec).
		WithInterfaceRegistry(n.registry).
		WithTxConfig(n.txs).
		WithLegacyAmino(n.amino)
	parts, ctx := errgroup.WithContext(ctx)
	if err := serveAPI(ctx, parts, given, n.chain, asked, log.NewNopLogger()); err != nil {
		return err
	}
	<-ctx.Done()
	return parts.Wait()
}

// consensusKey returns the key that a validator signs blocks with.
func consensusKey(name string) ed25519.PrivKey {
	return ed25519.GenPrivKeyFromSecret([]byte("validator " + name))
}

func newModulesWorld(parts options) (*world, error) {
	made := &world{
		options: parts,
		words:   maps.Clone(words),
		keys:    map[string]keyed{},
		genesis: &cmttypes.GenesisDoc{
			GenesisTime:     time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC),
			ChainID:         "modules-test-1",
			InitialHeight:   1,
			ConsensusParams: cmttypes.DefaultConsensusParams(),
		},
	}
	made.words["grace"] = "legal winner thank year wave sausage worth useful legal winner thank " +
		"year wave sausage worth useful legal winner thank year wave sausage worth title"
	made.words["heidi"] = "letter advice cage absurd amount doctor acoustic avoid letter advice " +
		"cage absurd amount doctor acoustic avoid letter advice cage absurd amount doctor " +
		"acoustic bless"
	made.words["ivan"] = strings.Repeat("zoo ", 23) + "vote"
	for name, each := range made.words {
		made.keys[name] = keyOf(each)
	}
	made.genesis.ConsensusParams.Evidence.MaxAgeNumBlocks = 30
	made.genesis.ConsensusParams.Evidence.MaxAgeDuration = unbondingTime
	empty, err := wired(made.options, log.NewNopLogger(), dbm.NewMemDB())
	if err != nil {
		return nil, err
	}
	state := empty.DefaultGenesis()
	var accounts []authtypes.GenesisAccount
	var bank banktypes.GenesisState
	empty.codec.MustUnmarshalJSON(state[banktypes.ModuleName], &bank)
	for at, name := range ordered(made.words) {
		accounts = append(accounts,
			authtypes.NewBaseAccount(made.address(name), nil, uint64(at), 0))
		bank.Balances = append(bank.Balances, banktypes.Balance{
			Address: made.address(name).String(),
			Coins:   of(coin("stake", 1_000_000_000_000), coin("token", 1_000_000_000_000)),
		})
	}
	bank.Balances = banktypes.SanitizeGenesisBalances(bank.Balances)
	state[banktypes.ModuleName] = empty.codec.MustMarshalJSON(&bank)
	state[authtypes.ModuleName] = empty.codec.MustMarshalJSON(
		authtypes.NewGenesisState(authtypes.DefaultParams(), accounts))

	staking := stakingtypes.DefaultGenesisState()
	staking.Params.UnbondingTime = unbondingTime
	staking.Params.MaxValidators = 4
	state[stakingtypes.ModuleName] = empty.codec.MustMarshalJSON(staking)

	slashing := slashingtypes.DefaultGenesisState()
	slashing.Params.SignedBlocksWindow = 20
	slashing.Params.DowntimeJailDuration = jailTime
	state[slashingtypes.ModuleName] = empty.codec.MustMarshalJSON(slashing)

	if parts.gov {
		state[govtypes.ModuleName] = empty.codec.MustMarshalJSON(govGenesis())
	}
	if made.options.pool {
		state["params"] = json.RawMessage("null")
		state["protocolpool"] = empty.codec.MustMarshalJSON(made.poolGenesis())
	}
	if err := made.addGenesisTxs(empty, state); err != nil {
		return nil, err
	}
	made.genesis.AppState, err = json.Marshal(state)
	return made, err
}

// addGenesisTxs adds the transactions that create the first validators.
func (w *world) addGenesisTxs(empty *chain, state map[string]json.RawMessage) error {
	if err := empty.Load(true); err != nil {
		return err
	}
	unstarted := &ledger{chain: empty, world: w}
	var txs []json.RawMessage
	for _, each := range stakes {
		message := w.create(each.name, each.tokens)
		message.Commission = stakingtypes.NewCommissionRates(
			dec(each.rate), dec(each.maxRate), dec(each.maxRateStep))
		tx, err := empty.txs.TxDecoder()(unstarted.sign(draft{
			msgs: []proto.Message{message}, noFee: true, gas: 200_000, signers: by(each.name)}))
		if err != nil {
			return err
		}
		text, err := empty.txs.TxJSONEncoder()(tx)
		if err != nil {
			return err
		}
		txs = append(txs, text)
	}
	state[genutiltypes.ModuleName] = empty.codec.MustMarshalJSON(
		genutiltypes.NewGenesisState(txs))
	return nil
}

func dec(text string) math.LegacyDec { return math.LegacyMustNewDecFromStr(text) }

// validator returns the operator address of an account.
func (w *world) validator(name string) string { return sdk.ValAddress(w.address(name)).String() }

func (w *world) create(name string, tokens int64) *stakingtypes.MsgCreateValidator {
	return must(stakingtypes.NewMsgCreateValidator(
		w.validator(name), publicKey(consensusKey(name)), coin("stake", tokens),
		stakingtypes.NewDescription(name+"'s validator", "", "", "", ""),
		stakingtypes.NewCommissionRates(dec("0.07"), dec("0.5"), dec("0.02")), math.OneInt()))
}

func publicKey(secret ed25519.PrivKey) cryptotypes.PubKey {
	return must(cryptocodec.FromCmtPubKeyInterface(secret.PubKey()))
}

func newNetwork(world *world, settings ...func(*chain)) (*network, error) {
	started, err := world.ledger("modules", settings...)
	if err != nil {
		return nil, err
	}
	made := &network{
		ledger: started,
		// The seed is arbitrary but fixed, so that two recordings are the same.
		random:    rand.New(rand.NewSource(53)),
		at:        world.genesis.GenesisTime,
		wait:      blockTime,
		absent:    map[string]bool{},
		nils:      map[string]bool{},
		sequences: map[string]int64{},
		recorded: &modulesRecording{
			chainRecording: chainRecording{
				Genesis: must(cmtjson.Marshal(world.genesis)),
				Init:    started.begun,
				States:  map[int64]modulesDump{},
			},
			ChainID:    world.genesis.ChainID,
			Accounts:   world.owners(),
			Validators: map[string]consensus{},
		},
		last: cmttypes.NewValidatorSet(nil),
		now: cmttypes.NewValidatorSet(
			must(cmttypes.PB2TM.ValidatorUpdates(started.first))),
	}
	made.next = made.now.CopyIncrementProposerPriority(1)
	for name := range world.words {
		secret := consensusKey(name)
		made.recorded.Validators[name] = consensus{
			Seed:     hex.EncodeToString(secret[:32]),
			PubKey:   secret.PubKey().Bytes(),
			Address:  secret.PubKey().Address().String(),
			Operator: world.validator(name),
		}
	}
	return made, nil
}

// imported returns a recording of a chain that begins with the state that this one exported.
func (n *network) imported(height int64) (*chainRecording, error) {
	state := maps.Clone(n.recorded.States[height].Export)
	state[genutiltypes.ModuleName] = n.codec.MustMarshalJSON(genutiltypes.DefaultGenesisState())
	world, genesis := *n.world, *n.world.genesis
	world.genesis = &genesis
	genesis.InitialHeight = height + 1
	genesis.GenesisTime = n.recorded.Blocks[height-1].Time.Add(time.Minute)
	var err error
	if genesis.AppState, err = json.Marshal(state); err != nil {
		return nil, err
	}
	made, err := newNetwork(&world)
	if err != nil {
		return nil, err
	}
	made.playImported()
	return &made.recorded.chainRecording, nil
}

// gasTables plays the same blocks again, and returns what the first scripted transaction of each
// name pays for, if it succeeds.
func (n *network) gasTables() (map[string]gasTable, error) {
	traced := steps{done: map[string][]step{}}
	made, err := newNetwork(n.world, traced.traced)
	if err != nil {
		return nil, err
	}
	made.play()
	tables := map[string]gasTable{}
	for at, block := range made.recorded.Blocks {
		if block.AppHash != n.recorded.Blocks[at].AppHash {
			panic(fmt.Sprintf("the traced application differs at %d", block.Height))
		}
		for index, tx := range block.Txs {
			if tx.Deliver.GasUsed != n.recorded.Blocks[at].Txs[index].Deliver.GasUsed {
				panic("the traced application differs: " + tx.Name)
			}
			_, known := tables[tx.Name]
			if tx.Deliver.Code == 0 && !known && !strings.HasPrefix(tx.Name, "random ") {
				tables[tx.Name] = gasTable{
					Bytes: tx.Bytes, Total: tx.Deliver.GasUsed, Steps: traced.done[string(tx.Bytes)]}
			}
		}
	}
	return tables, nil
}

// votes returns the last commit as CometBFT passes it.
func (n *network) votes() abci.CommitInfo {
	var found abci.CommitInfo
	for _, each := range n.last.Validators {
		vote := abci.VoteInfo{
			Validator:   cmttypes.TM2PB.Validator(each),
			BlockIdFlag: cmtproto.BlockIDFlagCommit,
		}
		switch {
		case n.absent[string(each.Address)]:
			vote.BlockIdFlag = cmtproto.BlockIDFlagAbsent
		case n.nils[string(each.Address)]:
			vote.BlockIdFlag = cmtproto.BlockIDFlagNil
		}
		found.Votes = append(found.Votes, vote)
	}
	return found
}

// step makes a block of the queued transactions.
func (n *network) step() {
	n.at = n.at.Add(n.wait)
	block := modulesBlock{
		blockRecord:        blockRecord{Time: n.at},
		Proposer:           n.now.GetProposer().Address.String(),
		NextValidatorsHash: hex.EncodeToString(n.next.Hash()),
		Votes:              [][3]any{},
		Misbehavior:        []misbehaviorRecord{},
	}
	request := &abci.RequestFinalizeBlock{
		ProposerAddress:    n.now.GetProposer().Address,
		NextValidatorsHash: n.next.Hash(),
		DecidedLastCommit:  n.votes(),
		Misbehavior:        n.proven,
	}
	for _, each := range request.DecidedLastCommit.Votes {
		block.Votes = append(block.Votes, [3]any{
			fmt.Sprintf("%X", each.Validator.Address), each.Validator.Power, each.BlockIdFlag})
	}
	for _, each := range n.proven {
		block.Misbehavior = append(block.Misbehavior, misbehaviorOf(each))
	}
	found := n.deliver(&block.blockRecord, request, n.queued)
	for at, each := range block.Txs {
		block.Txs[at].Hash = ""
		if each.Check.Code == 0 {
			block.Txs[at].Check = nil
		}
	}
	block.AppHash = hex.EncodeToString(found.AppHash)
	n.recorded.Blocks = append(n.recorded.Blocks, block)
	n.wait, n.proven, n.queued, n.sequences = blockTime, nil, nil, map[string]int64{}

	next := n.next.Copy()
	if updates := must(cmttypes.PB2TM.ValidatorUpdates(found.ValidatorUpdates)); len(updates) > 0 {
		if err := next.UpdateWithChangeSet(updates); err != nil {
			panic(err)
		}
	}
	next.IncrementProposerPriority(1)
	n.last, n.now, n.next = n.now, n.next, next
	if n.height%20 == 0 || n.height == n.world.genesis.InitialHeight {
		n.dump()
	}
}

func misbehaviorOf(each abci.Misbehavior) misbehaviorRecord {
	return misbehaviorRecord{
		each.Type.String(), fmt.Sprintf("%X", each.Validator.Address), each.Validator.Power,
		each.Height, each.Time, each.TotalVotingPower}
}

// prove adds evidence of a double sign of the validator at a height to the next block.
func (n *network) prove(
	kind abci.MisbehaviorType, name string, power, height int64, at time.Time,
) abci.Misbehavior {
	made := abci.Misbehavior{
		Type: kind, Height: height, Time: at, TotalVotingPower: n.now.TotalVotingPower(),
		Validator: abci.Validator{Address: consensusKey(name).PubKey().Address(), Power: power},
	}
	n.proven = append(n.proven, made)
	return made
}

// dump writes the modules' whole state into the recording.
func (n *network) dump() {
	ctx := n.NewContextLegacy(true, cmtproto.Header{Height: n.height, Time: n.at})
	names := []string{authtypes.ModuleName, banktypes.ModuleName, stakingtypes.ModuleName,
		distrtypes.ModuleName, "mint", slashingtypes.ModuleName, "evidence"}
	if n.world.options.grants {
		names = append(names, "feegrant", "authz")
	}
	if n.world.options.gov {
		names = append(names, "gov")
	}
	if n.world.options.pool {
		names = append(names, "protocolpool", "upgrade")
	}
	exported := must(n.ModuleManager.ExportGenesisForModules(ctx, n.codec, names))
	found := modulesDump{Export: exported, Rewards: map[string]json.RawMessage{}}
	read := func(path string, request proto.Message, reply codec.ProtoMarshaler) json.RawMessage {
		if err := n.asked(path, request, reply); err != nil {
			panic(err)
		}
		return must(n.codec.MarshalJSON(reply))
	}
	found.Pool = read(stakingQuery+"Pool", &stakingtypes.QueryPoolRequest{},
		&stakingtypes.QueryPoolResponse{})
	for name := range n.world.words {
		owner := n.world.address(name).String()
		found.Rewards[owner] = read(distrQuery+"DelegationTotalRewards",
			&distrtypes.QueryDelegationTotalRewardsRequest{DelegatorAddress: owner},
			&distrtypes.QueryDelegationTotalRewardsResponse{})
	}
	n.recorded.States[n.height] = found
}

// refuse gives the chain evidence of a validator that it does not know, which stops it.
func (n *network) refuse() *refusal {
	proven := n.prove(abci.MisbehaviorType_DUPLICATE_VOTE, "nobody", 1, n.height, n.at)
	_, err := n.FinalizeBlock(&abci.RequestFinalizeBlock{
		Height: n.height + 1, Time: n.at.Add(blockTime), ProposerAddress: n.now.GetProposer().Address,
		NextValidatorsHash: n.next.Hash(), DecidedLastCommit: n.votes(), Misbehavior: n.proven})
	if err == nil {
		panic("the evidence of an unknown validator was accepted")
	}
	return &refusal{misbehaviorOf(proven), err.Error()}
}
