//go:build !sdk055

package main

import (
	"cosmossdk.io/x/circuit"
	"cosmossdk.io/x/evidence"
	feegrant "cosmossdk.io/x/feegrant/module"
	nft "cosmossdk.io/x/nft/module"
	"cosmossdk.io/x/upgrade"
	"github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/x/crisis"
	group "github.com/cosmos/cosmos-sdk/x/group/module"
	"github.com/cosmos/cosmos-sdk/x/params"
)

// own are the modules that not all versions have, or not at these paths.
var own = []module.AppModuleBasic{
	circuit.AppModuleBasic{}, crisis.AppModuleBasic{}, evidence.AppModuleBasic{},
	feegrant.AppModuleBasic{}, group.AppModuleBasic{}, nft.AppModuleBasic{},
	params.AppModuleBasic{}, upgrade.AppModuleBasic{},
}
