//go:build sdk053

package main

import (
	"github.com/cosmos/cosmos-sdk/x/epochs"
	"github.com/cosmos/cosmos-sdk/x/protocolpool"
)

func init() {
	own = append(own, epochs.AppModule{}, protocolpool.AppModule{})
}
