//go:build upgrade

package main

import (
	upgrademodule "cosmossdk.io/api/cosmos/upgrade/module/v1"

	// The module registers itself.
	_ "cosmossdk.io/x/upgrade"
)

func init() { upgrade = &upgrademodule.Module{} }
