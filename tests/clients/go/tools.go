//go:build tools

// Package clients names what is built of others, so that go.sum covers it.
package clients

import _ "github.com/cometbft/cometbft/cmd/cometbft"
