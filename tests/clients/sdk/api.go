package main

import (
	"context"

	"cosmossdk.io/log"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/server"
	"github.com/cosmos/cosmos-sdk/server/api"
	serverconfig "github.com/cosmos/cosmos-sdk/server/config"
	"golang.org/x/sync/errgroup"
)

func apiConfig(given options) *serverconfig.Config {
	config := serverconfig.DefaultConfig()
	config.MinGasPrices = given.minGasPrices
	config.API.Enable, config.API.Address = true, given.api
	config.GRPC.Enable, config.GRPC.Address = true, given.grpc
	return config
}

// serveAPI runs the gateway and gRPC, as the SDK's own command does, which asks gRPC for what the
// gateway is asked.
func serveAPI(
	ctx context.Context, parts *errgroup.Group, given options, made *chain,
	asked client.Context, logger log.Logger,
) error {
	if given.api == "" {
		return nil
	}
	config := apiConfig(given)
	around := server.NewDefaultContext()
	around.Logger = logger
	rpc, asked, err := server.StartGrpcServer(ctx, parts, config.GRPC, asked, around, made)
	if err != nil {
		return err
	}
	gateway := api.New(asked, logger, rpc)
	made.RegisterAPIRoutes(gateway, config.API)
	parts.Go(func() error { return gateway.Start(ctx, *config) })
	return nil
}
