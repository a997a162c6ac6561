// Command simgenesis has the commands of the Cosmos SDK's own program that write a genesis
// document: init, keys, and genesis add-genesis-account, gentx and collect-gentxs.
//
// The modules are those of the program in one version of the SDK, which a build tag selects.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/keys"
	"github.com/cosmos/cosmos-sdk/server"
	"github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/module/testutil"
	"github.com/cosmos/cosmos-sdk/x/auth"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	"github.com/cosmos/cosmos-sdk/x/auth/vesting"
	authz "github.com/cosmos/cosmos-sdk/x/authz/module"
	"github.com/cosmos/cosmos-sdk/x/bank"
	"github.com/cosmos/cosmos-sdk/x/consensus"
	"github.com/cosmos/cosmos-sdk/x/distribution"
	"github.com/cosmos/cosmos-sdk/x/genutil"
	genutilcli "github.com/cosmos/cosmos-sdk/x/genutil/client/cli"
	genutiltypes "github.com/cosmos/cosmos-sdk/x/genutil/types"
	"github.com/cosmos/cosmos-sdk/x/gov"
	"github.com/cosmos/cosmos-sdk/x/mint"
	"github.com/cosmos/cosmos-sdk/x/slashing"
	"github.com/cosmos/cosmos-sdk/x/staking"
	"github.com/spf13/cobra"
)

// usual are the modules of all versions.
var usual = []module.AppModuleBasic{
	auth.AppModuleBasic{}, vesting.AppModuleBasic{}, authz.AppModuleBasic{},
	bank.AppModuleBasic{}, consensus.AppModuleBasic{}, distribution.AppModuleBasic{},
	genutil.NewAppModuleBasic(genutiltypes.DefaultMessageValidator), gov.NewAppModuleBasic(nil),
	mint.AppModuleBasic{}, slashing.AppModuleBasic{}, staking.AppModuleBasic{},
}

func main() {
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	all := slices.Concat(usual, own)
	encoding, modules := testutil.MakeTestEncodingConfig(all...), module.NewBasicManager(all...)
	home := filepath.Join(os.Getenv("HOME"), ".simapp")
	context := client.Context{}.WithCodec(encoding.Codec).
		WithInterfaceRegistry(encoding.InterfaceRegistry).WithLegacyAmino(encoding.Amino).
		WithTxConfig(encoding.TxConfig).WithAccountRetriever(authtypes.AccountRetriever{}).
		WithInput(os.Stdin).WithHomeDir(home).WithViper("")
	command := &cobra.Command{
		Use: "simgenesis", SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			given, err := client.ReadPersistentCommandFlags(context, command.Flags())
			if err != nil {
				return err
			}
			if err := client.SetCmdClientContextHandler(given, command); err != nil {
				return err
			}
			return server.InterceptConfigsPreRunHandler(command, "", nil, cmtcfg.DefaultConfig())
		},
	}
	command.PersistentFlags().String("home", home, "folder of genesis and keys")
	command.PersistentFlags().String("chain-id", "", "id of the chain")
	command.AddCommand(
		genutilcli.InitCmd(modules, home), keys.Commands(),
		genutilcli.Commands(encoding.TxConfig, modules, home))
	return command
}
