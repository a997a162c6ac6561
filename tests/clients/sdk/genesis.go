package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cosmossdk.io/math"
	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/privval"
	cmttypes "github.com/cometbft/cometbft/types"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	cryptocodec "github.com/cosmos/cosmos-sdk/crypto/codec"
	"github.com/cosmos/cosmos-sdk/crypto/hd"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	genutiltypes "github.com/cosmos/cosmos-sdk/x/genutil/types"
	minttypes "github.com/cosmos/cosmos-sdk/x/mint/types"
	pooltypes "github.com/cosmos/cosmos-sdk/x/protocolpool/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
)

// mnemonic is of the account of a chain for which none is named.
const mnemonic = "abandon abandon abandon abandon abandon abandon " +
	"abandon abandon abandon abandon abandon about"

// chainIDOf is that of the genesis that is there or given, or of the flag.
func chainIDOf(given options, config *cmtcfg.Config) (string, error) {
	for _, path := range []string{config.GenesisFile(), given.genesis} {
		found, err := genutiltypes.AppGenesisFromFile(path)
		if err == nil {
			return found.ChainID, nil
		}
		if path != "" && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return given.chainID, nil
}

// prepare writes what the home lacks: the validator's key and the genesis.
func prepare(given options, config *cmtcfg.Config, made *chain) error {
	for _, folder := range []string{"config", "data"} {
		if err := os.MkdirAll(filepath.Join(given.home, folder), 0o755); err != nil {
			return err
		}
	}
	if _, err := os.Stat(config.PrivValidatorKeyFile()); errors.Is(err, os.ErrNotExist) {
		secret := ed25519.GenPrivKeyFromSecret([]byte(made.ChainID()))
		privval.NewFilePV(
			secret, config.PrivValidatorKeyFile(), config.PrivValidatorStateFile()).Save()
	}
	if _, err := os.Stat(config.GenesisFile()); err == nil {
		return nil
	}
	document, err := newGenesis(given, config, made)
	if err != nil {
		return err
	}
	return document.SaveAs(config.GenesisFile())
}

func newGenesis(
	given options, config *cmtcfg.Config, made *chain,
) (*genutiltypes.AppGenesis, error) {
	if given.genesis != "" {
		return genutiltypes.AppGenesisFromFile(given.genesis)
	}
	signer := privval.LoadFilePV(config.PrivValidatorKeyFile(), config.PrivValidatorStateFile())
	state, err := firstState(given, made, signer)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	document := genutiltypes.NewAppGenesisWithVersion(given.chainID, text)
	document.AppName, document.AppVersion = name, "1"
	document.InitialHeight = 1
	document.Consensus = &genutiltypes.ConsensusGenesis{
		Params: cmttypes.DefaultConsensusParams(),
	}
	document.GenesisTime = time.Now().UTC()
	if given.genesisTime != "" {
		document.GenesisTime, err = time.Parse(time.RFC3339Nano, given.genesisTime)
	}
	return document, err
}

// firstState gives each account its balance, and bonds what the first one stakes.
func firstState(
	given options, made *chain, signer *privval.FilePV,
) (map[string]json.RawMessage, error) {
	if len(given.mnemonics) == 0 {
		given.mnemonics = list{mnemonic}
	}
	coins, err := sdk.ParseCoinsNormalized(given.balance)
	if err != nil {
		return nil, err
	}
	staked := sdk.NewInt64Coin(given.bond, given.stake)
	var accounts []authtypes.GenesisAccount
	var balances []banktypes.Balance
	for at, words := range given.mnemonics {
		owner, err := addressOf(words)
		if err != nil {
			return nil, fmt.Errorf("mnemonic %d: %w", at, err)
		}
		own := coins
		if at == 0 {
			own = coins.Sub(staked)
		}
		accounts = append(accounts, authtypes.NewBaseAccount(owner, nil, uint64(at), 0))
		balances = append(balances, banktypes.Balance{Address: owner.String(), Coins: own})
	}
	pool := authtypes.NewModuleAddress(stakingtypes.BondedPoolName)
	balances = append(balances,
		banktypes.Balance{Address: pool.String(), Coins: sdk.NewCoins(staked)})
	validator, err := validatorOf(accounts[0].GetAddress(), staked.Amount, signer)
	if err != nil {
		return nil, err
	}
	return stateOf(given, made, accounts, balances, validator), nil
}

func stateOf(
	given options, made *chain, accounts []authtypes.GenesisAccount,
	balances []banktypes.Balance, validator stakingtypes.Validator,
) map[string]json.RawMessage {
	state := made.DefaultGenesis()
	state[authtypes.ModuleName] = made.codec.MustMarshalJSON(
		authtypes.NewGenesisState(authtypes.DefaultParams(), accounts))
	bank := banktypes.DefaultGenesisState()
	bank.Balances = banktypes.SanitizeGenesisBalances(balances)
	state[banktypes.ModuleName] = made.codec.MustMarshalJSON(bank)
	params := stakingtypes.DefaultParams()
	params.BondDenom = given.bond
	delegation := stakingtypes.NewDelegation(
		accounts[0].GetAddress().String(), validator.OperatorAddress, validator.DelegatorShares)
	state[stakingtypes.ModuleName] = made.codec.MustMarshalJSON(stakingtypes.NewGenesisState(
		params, []stakingtypes.Validator{validator}, []stakingtypes.Delegation{delegation}))
	if given.rewards {
		mint := minttypes.DefaultGenesisState()
		mint.Params.MintDenom = given.bond
		state[minttypes.ModuleName] = made.codec.MustMarshalJSON(mint)
	}
	return state
}

func addressOf(words string) (sdk.AccAddress, error) {
	path := hd.CreateHDPath(sdk.CoinType, 0, 0).String()
	secret, err := hd.Secp256k1.Derive()(words, "", path)
	if err != nil {
		return nil, err
	}
	return sdk.AccAddress(hd.Secp256k1.Generate()(secret).PubKey().Address()), nil
}

// validatorOf is one that is bonded already.
func validatorOf(
	owner sdk.AccAddress, tokens math.Int, signer *privval.FilePV,
) (stakingtypes.Validator, error) {
	key, err := cryptocodec.FromCmtPubKeyInterface(slices.Clone(signer.Key.PubKey.(ed25519.PubKey)))
	if err != nil {
		return stakingtypes.Validator{}, err
	}
	packed, err := codectypes.NewAnyWithValue(key)
	if err != nil {
		return stakingtypes.Validator{}, err
	}
	return stakingtypes.Validator{
		OperatorAddress: sdk.ValAddress(owner).String(),
		ConsensusPubkey: packed,
		Status:          stakingtypes.Bonded,
		Tokens:          tokens,
		DelegatorShares: math.LegacyNewDecFromInt(tokens),
		Description:     stakingtypes.Description{Moniker: name},
		UnbondingTime:   time.Unix(0, 0).UTC(),
		Commission: stakingtypes.NewCommission(
			math.LegacyNewDecWithPrec(1, 1), math.LegacyNewDecWithPrec(2, 1),
			math.LegacyNewDecWithPrec(1, 2)),
		MinSelfDelegation: math.OneInt(),
	}, nil
}

// poolGenesis has a fund, and one that has expired.
func (w *world) poolGenesis() *pooltypes.GenesisState {
	past, soon := w.genesis.GenesisTime.Add(-time.Second), w.genesis.GenesisTime.Add(time.Minute)
	found := pooltypes.DefaultGenesisState()
	found.ContinuousFunds = []pooltypes.ContinuousFund{
		{Recipient: w.address("ivan").String(), Percentage: dec("0.05"), Expiry: &soon},
		{Recipient: w.address("heidi").String(), Percentage: dec("0.3"), Expiry: &past},
	}
	return found
}
