// Command client calls a node of the Cosmos SDK by client.Context, which the SDK's commands and
// Go programs use, and prints the error of each call, empty if there was none, as JSON.
//
//	client URL CHAIN_ID MNEMONIC
//
// It sends coins first, and asks then each query method of the modules, each method of the
// services beside them, and what reads transactions. The node makes blocks meanwhile.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"cosmossdk.io/math"
	evidencetypes "cosmossdk.io/x/evidence/types"
	"cosmossdk.io/x/feegrant"
	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/grpc/cmtservice"
	nodeservice "github.com/cosmos/cosmos-sdk/client/grpc/node"
	"github.com/cosmos/cosmos-sdk/client/grpc/reflection"
	"github.com/cosmos/cosmos-sdk/client/tx"
	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keyring"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/module/testutil"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/x/auth"
	authtx "github.com/cosmos/cosmos-sdk/x/auth/tx"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	"github.com/cosmos/cosmos-sdk/x/authz"
	"github.com/cosmos/cosmos-sdk/x/bank"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	consensustypes "github.com/cosmos/cosmos-sdk/x/consensus/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	"github.com/cosmos/cosmos-sdk/x/gov"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	govlegacy "github.com/cosmos/cosmos-sdk/x/gov/types/v1beta1"
	minttypes "github.com/cosmos/cosmos-sdk/x/mint/types"
	"github.com/cosmos/cosmos-sdk/x/params/types/proposal"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	"github.com/cosmos/cosmos-sdk/x/staking"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
)

const key = "sender"

// caller is the context, with the values that requests name and the errors of the calls.
type caller struct {
	client.Context
	values map[string]string
	failed map[string]string
}

func main() {
	made, err := newCaller(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	made.send()
	made.query()
	if err := json.NewEncoder(os.Stdout).Encode(made.failed); err != nil {
		panic(err)
	}
}

func newCaller(url, chainID, mnemonic string) (*caller, error) {
	node, err := rpchttp.New(url, "/websocket")
	if err != nil {
		return nil, err
	}
	types := testutil.MakeTestEncodingConfig(auth.AppModuleBasic{}, bank.AppModuleBasic{},
		staking.AppModuleBasic{}, gov.AppModuleBasic{})
	keys := keyring.NewInMemory(types.Codec)
	record, err := keys.NewAccount(key, mnemonic, "", hd.CreateHDPath(118, 0, 0).String(), hd.Secp256k1)
	if err != nil {
		return nil, err
	}
	sender, err := record.GetAddress()
	if err != nil {
		return nil, err
	}
	made := client.Context{}.WithClient(node).WithChainID(chainID).WithKeyring(keys).
		WithCodec(types.Codec).WithInterfaceRegistry(types.InterfaceRegistry).
		WithTxConfig(types.TxConfig).WithLegacyAmino(types.Amino).
		WithAccountRetriever(authtypes.AccountRetriever{}).WithBroadcastMode("sync").
		WithFromName(key).WithFromAddress(sender).WithNodeURI(url).WithOutput(os.Stderr)
	return &caller{made, map[string]string{"account": sender.String(),
		"operator": sdk.ValAddress(sender).String()}, map[string]string{}}, nil
}

func (c *caller) call(name string, call func() error) {
	c.failed[name] = ""
	if err := call(); err != nil {
		c.failed[name] = err.Error()
	}
}

// send sends coins as the SDK's commands do, and waits for the block.
func (c *caller) send() {
	from := c.FromAddress
	message := banktypes.NewMsgSend(from, from, sdk.NewCoins(sdk.NewCoin("stake", math.OneInt())))
	factory := tx.Factory{}.WithChainID(c.ChainID).WithKeybase(c.Keyring).WithTxConfig(c.TxConfig).
		WithAccountRetriever(c.AccountRetriever).WithGasAdjustment(1.5).WithFromName(key)
	c.call("Factory.Prepare", func() (err error) {
		factory, err = factory.Prepare(c.Context)
		return err
	})
	c.call("CalculateGas", func() error {
		_, gas, err := tx.CalculateGas(c.Context, factory, message)
		factory = factory.WithGas(gas)
		return err
	})
	var raw []byte
	c.call("Sign", func() error {
		built, err := factory.BuildUnsignedTx(message)
		if err != nil {
			return err
		}
		if err := tx.Sign(context.Background(), factory, key, built, true); err != nil {
			return err
		}
		raw, err = c.TxConfig.TxEncoder()(built.GetTx())
		return err
	})
	c.call("BroadcastTx", func() error {
		found, err := c.BroadcastTx(raw)
		if err == nil && found.Code != 0 {
			err = errors.New(found.RawLog)
		}
		if err == nil {
			c.values["hash"] = found.TxHash
		}
		return err
	})
	c.call("QueryTx", func() error {
		for range 600 {
			found, err := authtx.QueryTx(c.Context, c.values["hash"])
			if err == nil && found.Code == 0 {
				c.values["height"] = fmt.Sprint(found.Height)
				return nil
			}
			if err != nil && !strings.Contains(err.Error(), "not found") {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
		return errors.New("no block has it within a minute")
	})
	c.call("QueryTxsByEvents", func() error {
		found, err := authtx.QueryTxsByEvents(c.Context, 1, 10,
			fmt.Sprintf("message.sender='%s'", from), "")
		if err == nil && found.TotalCount == 0 {
			err = errors.New("no transaction")
		}
		return err
	})
	c.call("GetAccount", func() error {
		_, err := c.AccountRetriever.GetAccount(c.Context, from)
		return err
	})
	c.call("QueryStore", func() error {
		_, _, err := c.QueryStore(append([]byte{1}, from...), "acc")
		return err
	})
	c.call("GetNode.Status", func() error {
		node, err := c.GetNode()
		if err == nil {
			_, err = node.Status(context.Background())
		}
		return err
	})
}

// query calls each method of the generated clients.
func (c *caller) query() {
	for name, made := range map[string]any{
		"auth":         authtypes.NewQueryClient(c),
		"authz":        authz.NewQueryClient(c),
		"bank":         banktypes.NewQueryClient(c),
		"consensus":    consensustypes.NewQueryClient(c),
		"distribution": distrtypes.NewQueryClient(c),
		"evidence":     evidencetypes.NewQueryClient(c),
		"feegrant":     feegrant.NewQueryClient(c),
		"gov":          govtypes.NewQueryClient(c),
		"gov.v1beta1":  govlegacy.NewQueryClient(c),
		"mint":         minttypes.NewQueryClient(c),
		"node":         nodeservice.NewServiceClient(c),
		"params":       proposal.NewQueryClient(c),
		"reflection":   reflection.NewReflectionServiceClient(c),
		"slashing":     slashingtypes.NewQueryClient(c),
		"staking":      stakingtypes.NewQueryClient(c),
		"tendermint":   cmtservice.NewServiceClient(c),
		"tx":           txtypes.NewServiceClient(c),
	} {
		of := reflect.ValueOf(made)
		for at := range of.NumMethod() {
			method := of.Type().Method(at).Name
			c.call(name+"."+method, func() error {
				request := reflect.New(of.Method(at).Type().In(1).Elem())
				c.fill(name+"."+method, request.Elem())
				found := of.Method(at).Call(
					[]reflect.Value{reflect.ValueOf(context.Background()), request})
				err, _ := found[1].Interface().(error)
				return err
			})
		}
	}
}

// fill gives a request values of the chain, by the names of its fields.
func (c *caller) fill(name string, request reflect.Value) {
	height := reflect.ValueOf(c.values["height"])
	for at := range request.NumField() {
		field, to := request.Type().Field(at).Name, request.Field(at)
		switch {
		case to.Kind() == reflect.String:
			to.SetString(c.text(name, field))
		case field == "ProposalId":
			to.SetUint(1)
		case field == "Height":
			var number int64
			fmt.Sscan(height.String(), &number)
			to.SetInt(number)
		case field == "AddressBytes":
			to.SetBytes(c.FromAddress)
		case field == "TxBytes" && name != "tx.BroadcastTx":
			found, err := txtypes.NewServiceClient(c).GetTx(context.Background(),
				&txtypes.GetTxRequest{Hash: c.values["hash"]})
			if err == nil {
				raw, _ := found.Tx.Marshal()
				to.SetBytes(raw)
			}
		}
	}
}

func (c *caller) text(name, field string) string {
	if value, ok := map[string]string{
		"auth.ModuleAccountByName.Name":                "mint",
		"gov.Params.ParamsType":                        "deposit",
		"gov.v1beta1.Params.ParamsType":                "deposit",
		"params.Params.Subspace":                       "staking",
		"params.Params.Key":                            "BondDenom",
		"reflection.ListImplementations.InterfaceName": "cosmos.base.v1beta1.Msg",
		"tendermint.ABCIQuery.Path":                    "/store/acc/key",
		"tx.GetTx.Hash":                                c.values["hash"],
		"tx.GetTxsEvent.Query":                         "tx.height=" + c.values["height"],
		"staking.Validators.Status":                    "BOND_STATUS_BONDED",
		"slashing.SigningInfo.ConsAddress":             c.values["consensus"],
	}[name+"."+field]; ok {
		return value
	}
	switch {
	case field == "Denom":
		return "stake"
	case strings.HasPrefix(field, "Validator") || strings.Contains(field, "ValidatorAddr"):
		return c.values["operator"]
	case field == "SrcValidatorAddr" || field == "DstValidatorAddr" || field == "MsgTypeUrl" ||
		field == "Hash" || field == "Status":
		return ""
	case strings.HasSuffix(field, "Address") || strings.HasSuffix(field, "Addr") ||
		strings.HasSuffix(field, "String") || field == "Voter" || field == "Depositor" ||
		field == "Granter" || field == "Grantee":
		return c.values["account"]
	}
	return ""
}
