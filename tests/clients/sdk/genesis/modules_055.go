//go:build sdk055

package main

import (
	"github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/x/epochs"
	"github.com/cosmos/cosmos-sdk/x/evidence"
	feegrant "github.com/cosmos/cosmos-sdk/x/feegrant/module"
	"github.com/cosmos/cosmos-sdk/x/upgrade"
)

// own are the modules that not all versions have, or not at these paths.
var own = []module.AppModuleBasic{
	epochs.AppModule{}, evidence.AppModuleBasic{}, feegrant.AppModuleBasic{},
	upgrade.AppModuleBasic{},
}
