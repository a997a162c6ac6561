package main

import (
	"encoding/json"
	"time"

	"cosmossdk.io/log"
	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/privval"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keys/multisig"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
)

const (
	recordedChain = "bank-test-1"
	maxBlockGas   = 1_000_000
	maxBlockBytes = 200_000
)

// Well-known words, of the examples of BIP 39.
var words = map[string]string{
	"alice": mnemonic,
	"bob":   "legal winner thank year wave sausage worth useful legal winner thank yellow",
	"carol": "letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
	"dave":  "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong",
	"erin":  "jelly better achieve collect unaware mountain thought cargo oxygen act hood bridge",
	"frank": "void come effort suffer camp survey warrior heavy shoot primary clutch crush open " +
		"amazing screen patrol group space point ten exist slush involve unfold",
}

// world is what all the recorded chains begin with.
type world struct {
	options  options
	words    map[string]string
	genesis  *cmttypes.GenesisDoc
	proposer []byte
	keys     map[string]keyed
	multi    *multisig.LegacyAminoPubKey
}

// keyed is what an account belongs to; what signs is a PrivKey.
type keyed interface{ PubKey() cryptotypes.PubKey }

func keyOf(words string) cryptotypes.PrivKey {
	path := hd.CreateHDPath(sdk.CoinType, 0, 0).String()
	return hd.Secp256k1.Generate()(must(hd.Secp256k1.Derive()(words, "", path)))
}

// newWorld has alice who bonded a part, bob, carol whose key and sequence stand in the genesis,
// dave who has no stake, erin who is poor, an account of two of three keys; and frank, of whom
// the chain knows nothing.
func newWorld() (*world, error) {
	made := &world{words: words, keys: map[string]keyed{}}
	for name, each := range words {
		made.keys[name] = keyOf(each)
	}
	made.multi = multisig.NewLegacyAminoPubKey(2, []cryptotypes.PubKey{
		made.keys["alice"].PubKey(), made.keys["bob"].PubKey(), made.keys["carol"].PubKey()})
	secret := ed25519.GenPrivKeyFromSecret([]byte(recordedChain))
	made.proposer = secret.PubKey().Address()
	empty, err := wired(options{}, log.NewNopLogger(), dbm.NewMemDB())
	if err != nil {
		return nil, err
	}
	state, err := firstState(options{
		mnemonics: list{words["alice"], words["bob"], words["carol"], words["dave"], words["erin"]},
		balance:   "1000000000stake,1000000000token,5000frozen,7ibc/27394FB092D2ECCD56123C74F36E4C1F926001CEADA9CA97EA622B25F41E5EB2",
		bond:      "stake",
		stake:     100_000_000,
	}, empty, privval.NewFilePV(secret, "", ""))
	if err != nil {
		return nil, err
	}
	if err := made.furnish(empty, state); err != nil {
		return nil, err
	}
	text, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	params := cmttypes.DefaultConsensusParams()
	params.Block.MaxGas = maxBlockGas
	params.Block.MaxBytes = maxBlockBytes
	params.Evidence.MaxBytes = maxBlockBytes / 4
	made.genesis = &cmttypes.GenesisDoc{
		GenesisTime:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		ChainID:         recordedChain,
		InitialHeight:   1,
		ConsensusParams: params,
		AppState:        text,
	}
	return made, nil
}

// furnish adds to the first state what no flag of this program gives.
func (w *world) furnish(made *chain, state map[string]json.RawMessage) error {
	var auth authtypes.GenesisState
	made.codec.MustUnmarshalJSON(state[authtypes.ModuleName], &auth)
	accounts, err := authtypes.UnpackAccounts(auth.Accounts)
	if err != nil {
		return err
	}
	if err := accounts[2].SetPubKey(w.keys["carol"].PubKey()); err != nil {
		return err
	}
	if err := accounts[2].SetSequence(7); err != nil {
		return err
	}
	shared := sdk.AccAddress(w.multi.Address())
	accounts = append(accounts, authtypes.NewBaseAccount(shared, nil, 5, 0))
	state[authtypes.ModuleName] = made.codec.MustMarshalJSON(
		authtypes.NewGenesisState(auth.Params, accounts))

	var bank banktypes.GenesisState
	made.codec.MustUnmarshalJSON(state[banktypes.ModuleName], &bank)
	rich := sdk.NewCoins(
		sdk.NewInt64Coin("stake", 1_000_000_000), sdk.NewInt64Coin("token", 1_000_000_000))
	for at, each := range bank.Balances {
		switch each.Address {
		case w.address("dave").String():
			bank.Balances[at].Coins = sdk.NewCoins(sdk.NewInt64Coin("token", 1_000_000_000))
		case w.address("erin").String():
			bank.Balances[at].Coins = sdk.NewCoins(sdk.NewInt64Coin("stake", 100))
		}
	}
	bank.Balances = append(bank.Balances,
		banktypes.Balance{Address: shared.String(), Coins: rich})
	bank.SendEnabled = []banktypes.SendEnabled{
		{Denom: "frozen", Enabled: false}, {Denom: "token", Enabled: true}}
	bank.DenomMetadata = []banktypes.Metadata{{
		Description: "of the tests, <&> ü",
		DenomUnits: []*banktypes.DenomUnit{
			{Denom: "token", Exponent: 0, Aliases: []string{"microtoken"}},
			{Denom: "TOKEN", Exponent: 6},
		},
		Base: "token", Display: "TOKEN", Name: "Token", Symbol: "TOK",
		URI: "https://example.org/token",
	}}
	state[banktypes.ModuleName] = made.codec.MustMarshalJSON(&bank)
	return nil
}

func (w *world) address(name string) sdk.AccAddress {
	if name == "multi" {
		return sdk.AccAddress(w.multi.Address())
	}
	if key, known := w.keys[name]; known {
		return sdk.AccAddress(key.PubKey().Address())
	}
	return authtypes.NewModuleAddress(name)
}

func (w *world) owners() map[string]owner {
	found := map[string]owner{}
	if w.multi != nil {
		found["multi"] = owner{"", w.address("multi").String(), must(w.multi.Marshal())}
	}
	for name, key := range w.keys {
		found[name] = owner{w.words[name], w.address(name).String(), key.PubKey().Bytes()}
	}
	return found
}
