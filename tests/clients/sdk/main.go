// Command sdkchain is a chain of the Cosmos SDK with one validator: auth, bank and staking,
// with -rewards mint and distribution, and with -slashing also slashing, evidence and genutil.
//
//	sdkchain -home DIR [-mnemonic "…" …] [-rpc tcp://127.0.0.1:26657] [-commit 200ms] …
//
// A home without a genesis gets one by the flags, or that of -genesis; the same flags, with a
// -genesis-time, give the same one. With -init it ends there. The validator's key is made of the
// chain's id, unless the home has config/priv_validator_key.json. With -record-bank,
// -record-modules, -record-grants, -record-gov, -record-vesting or -record-pool it needs no home.
// Without -commit 10h, with which a chain stands still after a restart, it makes blocks all the
// time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are what the flags say.
type options struct {
	home          string
	chainID       string
	genesis       string
	genesisTime   string
	mnemonics     list
	balance       string
	bond          string
	stake         int64
	rewards       bool
	slashing      bool
	grants        bool
	gov           bool
	vesting       bool
	pool          bool
	initOnly      bool
	recordBank    bool
	recordParts   bool
	recordGrants  bool
	recordGov     bool
	recordVesting bool
	recordPool    bool
	rpc           string
	p2p           string
	api           string
	grpc          string
	minGasPrices  string
	commit        time.Duration
	logLevel      string
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse() options {
	var given options
	flag.StringVar(&given.home, "home", "", "folder of genesis, keys and stores")
	flag.StringVar(&given.chainID, "chain-id", "sdk-test-1", "id of a new chain")
	flag.StringVar(&given.genesis, "genesis", "", "genesis file of a new chain, made elsewhere")
	flag.StringVar(&given.genesisTime, "genesis-time", "", "RFC 3339; by default now")
	flag.Var(&given.mnemonics, "mnemonic", "of an account, several; the first bonds -stake")
	flag.StringVar(&given.balance, "balance", "1000000000stake,1000000000token",
		"what each account has")
	flag.StringVar(&given.bond, "bond", "stake", "denomination that is bonded")
	flag.Int64Var(&given.stake, "stake", 100_000_000, "bonded by the first account")
	flag.BoolVar(&given.rewards, "rewards", false, "also mint and distribution")
	flag.BoolVar(&given.slashing, "slashing", false,
		"with -rewards also slashing, evidence and genutil; needs a -genesis with gentxs")
	flag.BoolVar(&given.initOnly, "init", false, "make the home and end")
	flag.BoolVar(&given.recordBank, "record-bank", false,
		"print a recording of auth, bank and tx as JSON, of chains in memory, and end")
	flag.BoolVar(&given.recordParts, "record-modules", false,
		"print a recording of staking, distribution, mint, slashing and evidence as JSON, of a "+
			"chain in memory; with -api serve its REST gateway then, else end")
	flag.BoolVar(&given.recordGrants, "record-grants", false,
		"print a recording of feegrant and authz as JSON, of a chain in memory, and end")
	flag.BoolVar(&given.recordGov, "record-gov", false,
		"print a recording of gov as JSON, of a chain in memory, and end")
	flag.BoolVar(&given.recordVesting, "record-vesting", false,
		"print a recording of vesting accounts as JSON, of a chain in memory; with -api serve its "+
			"REST gateway then, else end")
	flag.BoolVar(&given.recordPool, "record-pool", false,
		"print a recording of protocolpool, upgrade, params and tx as JSON, of a chain in memory; "+
			"with -api serve its REST gateway then, else end")
	flag.StringVar(&given.rpc, "rpc", "tcp://127.0.0.1:26657", "address of the RPC")
	flag.StringVar(&given.api, "api", "", "address of the REST gateway, as tcp://127.0.0.1:1317")
	flag.StringVar(&given.grpc, "grpc", "127.0.0.1:9090", "address of gRPC, which -api runs too")
	flag.StringVar(&given.p2p, "p2p", "tcp://127.0.0.1:0", "address for peers")
	flag.StringVar(&given.minGasPrices, "minimum-gas-prices", "0stake", "as 0.025stake")
	flag.DurationVar(&given.commit, "commit", 200*time.Millisecond, "pause between blocks")
	flag.StringVar(&given.logLevel, "log-level", "error", "of the node")
	flag.Parse()
	return given
}

func run(ctx context.Context, given options) error {
	if given.recordBank {
		return recordBank(os.Stdout)
	}
	if given.recordParts {
		return recordModules(ctx, given, os.Stdout)
	}
	if given.recordGrants {
		return recordGrants(os.Stdout)
	}
	if given.recordGov {
		return recordGov(os.Stdout)
	}
	if given.recordVesting {
		return recordVesting(ctx, given, os.Stdout)
	}
	if given.recordPool {
		return recordPool(ctx, given, os.Stdout)
	}
	if given.home == "" {
		return fmt.Errorf("-home is missing")
	}
	config, err := configOf(given)
	if err != nil {
		return err
	}
	logger := loggerOf(given)
	made, err := newChain(given, config, logger)
	if err != nil {
		return err
	}
	defer made.Close()
	if err := prepare(given, config, made); err != nil {
		return err
	}
	if given.initOnly {
		return nil
	}
	return serve(ctx, given, config, made, logger)
}
