package main

import (
	"context"
	"os"

	"cosmossdk.io/log"
	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/node"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	"github.com/cometbft/cometbft/proxy"
	"github.com/cometbft/cometbft/rpc/client/local"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/server"
	cmtlog "github.com/cosmos/cosmos-sdk/server/log"
	genutiltypes "github.com/cosmos/cosmos-sdk/x/genutil/types"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

func loggerOf(given options) log.Logger {
	level, err := zerolog.ParseLevel(given.logLevel)
	if err != nil {
		level = zerolog.ErrorLevel
	}
	return log.NewLogger(os.Stderr, log.LevelOption(level), log.ColorOption(false))
}

func configOf(given options) (*cmtcfg.Config, error) {
	config := cmtcfg.DefaultConfig().SetRoot(given.home)
	config.Moniker = name
	config.RPC.ListenAddress = given.rpc
	config.P2P.ListenAddress = given.p2p
	config.P2P.AddrBookStrict = false
	config.Consensus.TimeoutCommit = given.commit
	config.Consensus.SkipTimeoutCommit = false
	return config, config.ValidateBasic()
}

// serve runs the node until it is told to end.
func serve(
	ctx context.Context, given options, config *cmtcfg.Config, made *chain, logger log.Logger,
) error {
	key, err := p2p.LoadOrGenNodeKey(config.NodeKeyFile())
	if err != nil {
		return err
	}
	running, err := node.NewNode(
		config,
		privval.LoadFilePV(config.PrivValidatorKeyFile(), config.PrivValidatorStateFile()),
		key,
		proxy.NewLocalClientCreator(server.NewCometABCIWrapper(made)),
		func() (*cmttypes.GenesisDoc, error) {
			document, err := genutiltypes.AppGenesisFromFile(config.GenesisFile())
			if err != nil {
				return nil, err
			}
			return document.ToGenesisDoc()
		},
		cmtcfg.DefaultDBProvider,
		node.DefaultMetricsProvider(config.Instrumentation),
		cmtlog.CometLoggerWrapper{Logger: logger},
	)
	if err != nil {
		return err
	}
	// cosmos.tx.v1beta1.Service simulates in the application, and asks the node for what is
	// committed.
	asked := client.Context{}.
		WithChainID(made.ChainID()).
		WithClient(local.New(running)).
		WithCodec(made.codec).
		WithInterfaceRegistry(made.registry).
		WithTxConfig(made.txs).
		WithLegacyAmino(made.amino)
	made.RegisterTxService(asked)
	made.RegisterTendermintService(asked)
	if err := running.Start(); err != nil {
		return err
	}
	parts, ctx := errgroup.WithContext(ctx)
	if given.api != "" {
		made.RegisterNodeService(asked, *apiConfig(given))
	}
	if err := serveAPI(ctx, parts, given, made, asked, logger); err != nil {
		return err
	}
	<-ctx.Done()
	if err := parts.Wait(); err != nil {
		return err
	}
	if err := running.Stop(); err != nil {
		return err
	}
	running.Wait()
	return nil
}
