package main

import (
	"path/filepath"
	"slices"

	runtimemodule "cosmossdk.io/api/cosmos/app/runtime/v1alpha1"
	appv1alpha1 "cosmossdk.io/api/cosmos/app/v1alpha1"
	authmodule "cosmossdk.io/api/cosmos/auth/module/v1"
	authzmodule "cosmossdk.io/api/cosmos/authz/module/v1"
	bankmodule "cosmossdk.io/api/cosmos/bank/module/v1"
	consensusmodule "cosmossdk.io/api/cosmos/consensus/module/v1"
	distributionmodule "cosmossdk.io/api/cosmos/distribution/module/v1"
	evidencemodule "cosmossdk.io/api/cosmos/evidence/module/v1"
	feegrantmodule "cosmossdk.io/api/cosmos/feegrant/module/v1"
	genutilmodule "cosmossdk.io/api/cosmos/genutil/module/v1"
	govmodule "cosmossdk.io/api/cosmos/gov/module/v1"
	mintmodule "cosmossdk.io/api/cosmos/mint/module/v1"
	paramsmodule "cosmossdk.io/api/cosmos/params/module/v1"
	poolmodule "cosmossdk.io/api/cosmos/protocolpool/module/v1"
	slashingmodule "cosmossdk.io/api/cosmos/slashing/module/v1"
	stakingmodule "cosmossdk.io/api/cosmos/staking/module/v1"
	txconfig "cosmossdk.io/api/cosmos/tx/config/v1"
	vestingmodule "cosmossdk.io/api/cosmos/vesting/module/v1"
	"cosmossdk.io/depinject"
	"cosmossdk.io/depinject/appconfig"
	"cosmossdk.io/log"
	cmtcfg "github.com/cometbft/cometbft/config"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/runtime"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authkeeper "github.com/cosmos/cosmos-sdk/x/auth/keeper"
	bankkeeper "github.com/cosmos/cosmos-sdk/x/bank/keeper"
	stakingkeeper "github.com/cosmos/cosmos-sdk/x/staking/keeper"
	"github.com/cosmos/gogoproto/proto"

	// Modules register themselves.
	_ "cosmossdk.io/x/evidence"
	_ "cosmossdk.io/x/feegrant/module"
	_ "github.com/cosmos/cosmos-sdk/x/auth"
	_ "github.com/cosmos/cosmos-sdk/x/auth/tx/config"
	_ "github.com/cosmos/cosmos-sdk/x/auth/vesting"
	_ "github.com/cosmos/cosmos-sdk/x/authz/module"
	_ "github.com/cosmos/cosmos-sdk/x/bank"
	_ "github.com/cosmos/cosmos-sdk/x/consensus"
	_ "github.com/cosmos/cosmos-sdk/x/distribution"
	_ "github.com/cosmos/cosmos-sdk/x/genutil"
	_ "github.com/cosmos/cosmos-sdk/x/gov"
	_ "github.com/cosmos/cosmos-sdk/x/mint"
	_ "github.com/cosmos/cosmos-sdk/x/params"
	_ "github.com/cosmos/cosmos-sdk/x/protocolpool"
	_ "github.com/cosmos/cosmos-sdk/x/slashing"
	_ "github.com/cosmos/cosmos-sdk/x/staking"
)

const (
	name   = "sdkchain"
	prefix = "cosmos"
)

// upgrade is the module x/upgrade, in a program that has it.
var upgrade proto.Message

// chain is the application, and what reads and writes its types.
type chain struct {
	*runtime.App
	codec    codec.Codec
	txs      client.TxConfig
	amino    *codec.LegacyAmino
	registry codectypes.InterfaceRegistry
	accounts authkeeper.AccountKeeper
	coins    bankkeeper.Keeper
	staking  *stakingkeeper.Keeper
}

func newChain(given options, config *cmtcfg.Config, logger log.Logger) (*chain, error) {
	chainID, err := chainIDOf(given, config)
	if err != nil {
		return nil, err
	}
	db, err := dbm.NewDB("application", dbm.GoLevelDBBackend, filepath.Join(given.home, "data"))
	if err != nil {
		return nil, err
	}
	made, err := wired(given, logger, db,
		baseapp.SetChainID(chainID), baseapp.SetMinGasPrices(given.minGasPrices))
	if err != nil {
		return nil, err
	}
	return made, made.Load(true)
}

// wired is an application that is not loaded yet.
func wired(
	given options, logger log.Logger, db dbm.DB, settings ...func(*baseapp.BaseApp),
) (*chain, error) {
	var (
		builder *runtime.AppBuilder
		made    chain
	)
	wiring := depinject.Configs(
		modules(given),
		depinject.Supply(logger),
		// Else it is chance whether the keeper of mint, which has the same methods, is taken.
		depinject.BindInterface(
			"github.com/cosmos/cosmos-sdk/x/mint/types/types.StakingKeeper",
			"github.com/cosmos/cosmos-sdk/x/staking/keeper/*keeper.Keeper"),
	)
	err := depinject.Inject(wiring, &builder,
		&made.codec, &made.txs, &made.amino, &made.registry, &made.accounts, &made.coins, &made.staking)
	if err != nil {
		return nil, err
	}
	made.App = builder.Build(db, nil, settings...)
	return &made, nil
}

// modules says of what the application consists, and in which order its parts are called.
func modules(given options) depinject.Config {
	order := &runtimemodule.Module{
		AppName:       name,
		PreBlockers:   []string{"auth"},
		BeginBlockers: []string{"staking"},
		EndBlockers:   []string{"staking"},
		InitGenesis:   []string{"auth", "bank", "staking", "consensus"},
		OverrideStoreKeys: []*runtimemodule.StoreKeyConfig{
			{ModuleName: "auth", KvStoreKey: "acc"},
		},
	}
	accounts := []*authmodule.ModuleAccountPermission{
		{Account: "fee_collector"},
		{Account: "bonded_tokens_pool", Permissions: []string{"burner", "staking"}},
		{Account: "not_bonded_tokens_pool", Permissions: []string{"burner", "staking"}},
	}
	parts := map[string]proto.Message{}
	if given.rewards {
		order.BeginBlockers = []string{"mint", "distribution", "staking"}
		order.InitGenesis = []string{
			"auth", "bank", "distribution", "staking", "mint", "consensus"}
		accounts = append(accounts,
			&authmodule.ModuleAccountPermission{Account: "distribution"},
			&authmodule.ModuleAccountPermission{Account: "mint", Permissions: []string{"minter"}})
		parts["mint"] = &mintmodule.Module{}
		parts["distribution"] = &distributionmodule.Module{}
	}
	if given.slashing {
		order.BeginBlockers = []string{"mint", "distribution", "slashing", "evidence", "staking"}
		order.InitGenesis = []string{"auth", "bank", "distribution", "staking", "slashing", "mint",
			"genutil", "evidence", "consensus"}
		parts["slashing"] = &slashingmodule.Module{}
		parts["evidence"] = &evidencemodule.Module{}
		parts["genutil"] = &genutilmodule.Module{}
	}
	if given.grants {
		order.BeginBlockers = append(order.BeginBlockers, "authz")
		order.EndBlockers = []string{"staking", "feegrant"}
		order.InitGenesis = append(order.InitGenesis, "feegrant", "authz")
		parts["authz"] = &authzmodule.Module{}
		parts["feegrant"] = &feegrantmodule.Module{}
	}
	if given.gov {
		order.EndBlockers = append([]string{"gov"}, order.EndBlockers...)
		at := slices.Index(order.InitGenesis, "mint")
		order.InitGenesis = slices.Insert(order.InitGenesis, at, "gov")
		accounts = append(accounts,
			&authmodule.ModuleAccountPermission{Account: "gov", Permissions: []string{"burner"}})
		parts["gov"] = &govmodule.Module{}
	}
	if given.vesting {
		order.InitGenesis = append(order.InitGenesis, "vesting")
		parts["vesting"] = &vestingmodule.Module{}
	}
	if given.pool {
		order.PreBlockers = []string{"upgrade", "auth"}
		order.BeginBlockers = slices.Insert(order.BeginBlockers, 2, "protocolpool")
		order.InitGenesis = append(order.InitGenesis, "upgrade", "protocolpool")
		accounts = append(accounts,
			&authmodule.ModuleAccountPermission{Account: "protocolpool"},
			&authmodule.ModuleAccountPermission{Account: "protocolpool_escrow"})
		// No governance: alice does what only it may do.
		alice := sdk.AccAddress(keyOf(words["alice"]).PubKey().Address()).String()
		parts["protocolpool"] = &poolmodule.Module{Authority: alice}
		parts["upgrade"] = upgrade
		parts["params"] = &paramsmodule.Module{}
	}
	parts["runtime"] = order
	parts["auth"] = &authmodule.Module{Bech32Prefix: prefix, ModuleAccountPermissions: accounts}
	parts["bank"] = &bankmodule.Module{}
	parts["staking"] = &stakingmodule.Module{}
	parts["consensus"] = &consensusmodule.Module{}
	parts["tx"] = &txconfig.Config{}
	config := &appv1alpha1.Config{}
	for part, message := range parts {
		config.Modules = append(config.Modules,
			&appv1alpha1.ModuleConfig{Name: part, Config: appconfig.WrapAny(message)})
	}
	return appconfig.Compose(config)
}
