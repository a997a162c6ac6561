package main

import (
	"context"
	"encoding/json"
	"math/big"

	abci "github.com/cometbft/cometbft/abci/types"
	nodeservice "github.com/cosmos/cosmos-sdk/client/grpc/node"
	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/address"
	"github.com/cosmos/cosmos-sdk/types/query"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/gogoproto/proto"
)

type queryRecord struct {
	Scenario string          `json:"scenario"`
	Name     string          `json:"name"`
	Path     string          `json:"path"`
	Data     []byte          `json:"data"`
	Height   int64           `json:"height"`
	Prove    bool            `json:"prove"`
	Request  json.RawMessage `json:"request,omitempty"`
	Reply    replyRecord     `json:"reply"`
}

type replyRecord struct {
	Code      uint32          `json:"code"`
	Codespace string          `json:"codespace"`
	Log       string          `json:"log"`
	Info      string          `json:"info"`
	Index     int64           `json:"index"`
	Key       []byte          `json:"key"`
	Value     []byte          `json:"value"`
	Height    int64           `json:"height"`
	Read      json.RawMessage `json:"read,omitempty"`
}

// highS is the other signature of the same message.
func highS(signature []byte) {
	order, _ := new(big.Int).SetString(
		"FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141", 16)
	s := new(big.Int).SetBytes(signature[32:])
	s.Sub(order, s).FillBytes(signature[32:])
}

// history is what the queries are asked of.
func history(l *ledger) {
	for _, each := range []draft{
		l.send(nil),
		l.multisend(amino),
		l.send(func(d *draft) { d.msgs[0] = l.from("bob", "somebody", coin("stake", 9)) }),
		l.send(func(d *draft) { d.msgs[0] = l.from("bob", "carol", coin("token", 2_000_000_000)) }),
	} {
		l.block(sent{"of the history", l.sign(each)})
	}
	l.block()
}

type asker struct {
	*ledger
	found []queryRecord
}

const (
	authQuery    = "/cosmos.auth.v1beta1.Query/"
	bankQuery    = "/cosmos.bank.v1beta1.Query/"
	stakingQuery = "/cosmos.staking.v1beta1.Query/"
	txService    = "/cosmos.tx.v1beta1.Service/"
)

func (a *asker) raw(name, path string, data []byte, height int64, prove bool) *queryRecord {
	found, err := a.Query(context.Background(),
		&abci.RequestQuery{Path: path, Data: data, Height: height, Prove: prove})
	if err != nil {
		panic(err)
	}
	a.found = append(a.found, queryRecord{
		Scenario: a.record.Name, Name: name, Path: path, Data: data, Height: height, Prove: prove,
		Reply: replyRecord{Code: found.Code, Codespace: found.Codespace, Log: untraced(found.Log),
			Info: found.Info, Index: found.Index, Key: found.Key, Value: found.Value,
			Height: found.Height}})
	return &a.found[len(a.found)-1]
}

// of asks at a height, and reads the value into the reply.
func (a *asker) of(
	name, path string, request proto.Message, reply codec.ProtoMarshaler, height int64,
) {
	made := a.raw(name, path, must(proto.Marshal(request)), height, false)
	if text, err := a.codec.MarshalJSON(request.(codec.ProtoMarshaler)); err == nil {
		made.Request = text
	}
	if made.Reply.Code == 0 && a.codec.Unmarshal(made.Reply.Value, reply) == nil {
		if text, err := a.codec.MarshalJSON(reply); err == nil {
			made.Reply.Read = text
		}
	}
}

func queries(l *ledger) []queryRecord {
	a := &asker{ledger: l}
	a.auth()
	a.bank()
	a.bankTotals()
	a.staking()
	a.simulate()
	a.others()
	a.stores()
	return a.found
}

func (a *asker) auth() {
	account := func(name, of string, height int64) {
		a.of("account "+name, authQuery+"Account", &authtypes.QueryAccountRequest{Address: of},
			&authtypes.QueryAccountResponse{}, height)
	}
	for _, each := range []string{"alice", "bob", "carol", "multi", "frank", "fee_collector",
		"bonded_tokens_pool", "not_bonded_tokens_pool", "absent"} {
		account(each, a.world.address(each).String(), 0)
	}
	account("bob at 1", a.world.address("bob").String(), 1)
	account("bob at 2", a.world.address("bob").String(), 2)
	account("frank at 2", a.world.address("frank").String(), 2)
	account("bob now", a.world.address("bob").String(), a.height)
	account("bob later", a.world.address("bob").String(), a.height+1)
	account("bob much later", a.world.address("bob").String(), 1_000_000)
	account("bob before", a.world.address("bob").String(), -1)
	account("empty", "", 0)
	account("invalid", "nobody", 0)
	account("of another prefix", must(sdk.Bech32ifyAddressBytes("other", make([]byte, 20))), 0)
	account("wrong checksum", "cosmos19rl4cm2hmr8afy4kldpxz3fka4jguq0auqdal5", 0)
	for _, name := range ordered(pages()) {
		page := pages()[name]
		a.of("accounts "+name, authQuery+"Accounts",
			&authtypes.QueryAccountsRequest{Pagination: page},
			&authtypes.QueryAccountsResponse{}, 0)
	}
	a.of("auth params", authQuery+"Params", &authtypes.QueryParamsRequest{},
		&authtypes.QueryParamsResponse{}, 0)
	a.of("account info", authQuery+"AccountInfo",
		&authtypes.QueryAccountInfoRequest{Address: a.world.address("bob").String()},
		&authtypes.QueryAccountInfoResponse{}, 0)
	a.of("module accounts", authQuery+"ModuleAccounts", &authtypes.QueryModuleAccountsRequest{},
		&authtypes.QueryModuleAccountsResponse{}, 0)
	a.of("module account", authQuery+"ModuleAccountByName",
		&authtypes.QueryModuleAccountByNameRequest{Name: "fee_collector"},
		&authtypes.QueryModuleAccountByNameResponse{}, 0)
	a.of("no module account", authQuery+"ModuleAccountByName",
		&authtypes.QueryModuleAccountByNameRequest{Name: "none"},
		&authtypes.QueryModuleAccountByNameResponse{}, 0)
	a.of("prefix", authQuery+"Bech32Prefix", &authtypes.Bech32PrefixRequest{},
		&authtypes.Bech32PrefixResponse{}, 0)
	a.of("address by account number", authQuery+"AccountAddressByID",
		&authtypes.QueryAccountAddressByIDRequest{AccountId: 1},
		&authtypes.QueryAccountAddressByIDResponse{}, 0)
}

func pages() map[string]*query.PageRequest {
	return map[string]*query.PageRequest{
		"without page":       nil,
		"of 2":               {Limit: 2},
		"of 2, counted":      {Limit: 2, CountTotal: true},
		"from 1":             {Offset: 1, Limit: 2},
		"from 1, counted":    {Offset: 1, Limit: 2, CountTotal: true},
		"from 100":           {Offset: 100},
		"backwards":          {Limit: 2, Reverse: true},
		"backwards from 1":   {Limit: 2, Offset: 1, Reverse: true},
		"limit 0, counted":   {CountTotal: true},
		"by key":             {Key: []byte("stake"), Limit: 2},
		"by key backwards":   {Key: []byte("stake"), Limit: 2, Reverse: true},
		"by key and offset":  {Key: []byte("stake"), Offset: 1},
		"by key, counted":    {Key: []byte("stake"), CountTotal: true},
		"of a large limit":   {Limit: 1 << 62},
		"of a larger limit":  {Limit: 1<<64 - 1},
		"of a larger offset": {Offset: 1<<64 - 1, Limit: 1},
	}
}

func (a *asker) bank() {
	bob := a.world.address("bob").String()
	balance := func(name, of, denom string, height int64) {
		a.of("balance "+name, bankQuery+"Balance",
			&banktypes.QueryBalanceRequest{Address: of, Denom: denom},
			&banktypes.QueryBalanceResponse{}, height)
	}
	balance("stake", bob, "stake", 0)
	balance("stake at 1", bob, "stake", 1)
	balance("stake at 3", bob, "stake", 3)
	balance("none", bob, "nocoin", 0)
	balance("bad coin", bob, "!", 0)
	balance("no coin", bob, "", 0)
	balance("absent", a.world.address("absent").String(), "stake", 0)
	balance("invalid", "nobody", "stake", 0)
	balance("empty", "", "stake", 0)
	balance("later", bob, "stake", a.height+1)
	for _, name := range ordered(pages()) {
		page := pages()[name]
		a.of("balances "+name, bankQuery+"AllBalances",
			&banktypes.QueryAllBalancesRequest{Address: bob, Pagination: page},
			&banktypes.QueryAllBalancesResponse{}, 0)
		a.of("spendable balances "+name, bankQuery+"SpendableBalances",
			&banktypes.QuerySpendableBalancesRequest{Address: bob, Pagination: page},
			&banktypes.QuerySpendableBalancesResponse{}, 0)
		a.of("supply "+name, bankQuery+"TotalSupply",
			&banktypes.QueryTotalSupplyRequest{Pagination: page},
			&banktypes.QueryTotalSupplyResponse{}, 0)
		a.of("denoms metadata "+name, bankQuery+"DenomsMetadata",
			&banktypes.QueryDenomsMetadataRequest{Pagination: page},
			&banktypes.QueryDenomsMetadataResponse{}, 0)
		a.of("denom owners "+name, bankQuery+"DenomOwners",
			&banktypes.QueryDenomOwnersRequest{Denom: "token", Pagination: page},
			&banktypes.QueryDenomOwnersResponse{}, 0)
	}
	for _, of := range []string{a.world.address("absent").String(), "nobody", ""} {
		a.of("balances of "+of, bankQuery+"AllBalances",
			&banktypes.QueryAllBalancesRequest{Address: of},
			&banktypes.QueryAllBalancesResponse{}, 0)
		a.of("spendable balances of "+of, bankQuery+"SpendableBalances",
			&banktypes.QuerySpendableBalancesRequest{Address: of},
			&banktypes.QuerySpendableBalancesResponse{}, 0)
	}
	a.of("balances with metadata", bankQuery+"AllBalances",
		&banktypes.QueryAllBalancesRequest{Address: bob, ResolveDenom: true},
		&banktypes.QueryAllBalancesResponse{}, 0)
	a.of("balances at 2", bankQuery+"AllBalances", &banktypes.QueryAllBalancesRequest{Address: bob},
		&banktypes.QueryAllBalancesResponse{}, 2)
	for _, denom := range []string{"stake", "nocoin", ""} {
		a.of("spendable balance "+denom, bankQuery+"SpendableBalanceByDenom",
			&banktypes.QuerySpendableBalanceByDenomRequest{Address: bob, Denom: denom},
			&banktypes.QuerySpendableBalanceByDenomResponse{}, 0)
	}
}

func (a *asker) bankTotals() {
	for _, denom := range []string{"stake", "token", "nocoin", "!", ""} {
		a.of("supply of "+denom, bankQuery+"SupplyOf",
			&banktypes.QuerySupplyOfRequest{Denom: denom}, &banktypes.QuerySupplyOfResponse{}, 0)
		a.of("denom metadata of "+denom, bankQuery+"DenomMetadata",
			&banktypes.QueryDenomMetadataRequest{Denom: denom},
			&banktypes.QueryDenomMetadataResponse{}, 0)
		a.of("denom metadata by query string of "+denom, bankQuery+"DenomMetadataByQueryString",
			&banktypes.QueryDenomMetadataByQueryStringRequest{Denom: denom},
			&banktypes.QueryDenomMetadataByQueryStringResponse{}, 0)
	}
	a.of("supply at 1", bankQuery+"TotalSupply", &banktypes.QueryTotalSupplyRequest{},
		&banktypes.QueryTotalSupplyResponse{}, 1)
	a.of("bank params", bankQuery+"Params", &banktypes.QueryParamsRequest{},
		&banktypes.QueryParamsResponse{}, 0)
	a.of("send enabled", bankQuery+"SendEnabled", &banktypes.QuerySendEnabledRequest{},
		&banktypes.QuerySendEnabledResponse{}, 0)
	a.of("send enabled of some", bankQuery+"SendEnabled",
		&banktypes.QuerySendEnabledRequest{Denoms: []string{"frozen", "stake"}},
		&banktypes.QuerySendEnabledResponse{}, 0)
}

func (a *asker) staking() {
	for _, status := range []string{"", "BOND_STATUS_BONDED", "BOND_STATUS_UNBONDED", "bad"} {
		a.of("validators "+status, stakingQuery+"Validators",
			&stakingtypes.QueryValidatorsRequest{Status: status},
			&stakingtypes.QueryValidatorsResponse{}, 0)
	}
	own := sdk.ValAddress(a.world.address("alice")).String()
	for _, of := range []string{
		own, sdk.ValAddress(a.world.address("bob")).String(),
		a.world.address("alice").String(), "nobody", "",
	} {
		a.of("validator "+of, stakingQuery+"Validator",
			&stakingtypes.QueryValidatorRequest{ValidatorAddr: of},
			&stakingtypes.QueryValidatorResponse{}, 0)
	}
	a.of("pool", stakingQuery+"Pool", &stakingtypes.QueryPoolRequest{},
		&stakingtypes.QueryPoolResponse{}, 0)
	a.of("staking params", stakingQuery+"Params", &stakingtypes.QueryParamsRequest{},
		&stakingtypes.QueryParamsResponse{}, 0)
	a.of("delegations", stakingQuery+"DelegatorDelegations",
		&stakingtypes.QueryDelegatorDelegationsRequest{
			DelegatorAddr: a.world.address("alice").String()},
		&stakingtypes.QueryDelegatorDelegationsResponse{}, 0)
	a.of("delegations of bob", stakingQuery+"DelegatorDelegations",
		&stakingtypes.QueryDelegatorDelegationsRequest{
			DelegatorAddr: a.world.address("bob").String()},
		&stakingtypes.QueryDelegatorDelegationsResponse{}, 0)
	a.of("delegation", stakingQuery+"Delegation", &stakingtypes.QueryDelegationRequest{
		DelegatorAddr: a.world.address("alice").String(), ValidatorAddr: own},
		&stakingtypes.QueryDelegationResponse{}, 0)
	a.of("no delegation", stakingQuery+"Delegation", &stakingtypes.QueryDelegationRequest{
		DelegatorAddr: a.world.address("bob").String(), ValidatorAddr: own},
		&stakingtypes.QueryDelegationResponse{}, 0)
}

func (a *asker) simulate() {
	run := func(name string, raw []byte) {
		a.of("simulate "+name, txService+"Simulate", &txtypes.SimulateRequest{TxBytes: raw},
			&txtypes.SimulateResponse{}, 0)
	}
	bare := func(change func(*draft)) []byte {
		return a.sign(a.send(func(d *draft) {
			d.noFee, d.gas = true, 0
			d.auth = func(auth *txtypes.AuthInfo) {
				auth.SignerInfos[0].ModeInfo = mode(signing.SignMode_SIGN_MODE_UNSPECIFIED)
			}
			d.raw = func(raw *txtypes.TxRaw) { raw.Signatures[0] = []byte{} }
			if change != nil {
				change(d)
			}
		}))
	}
	run("as a wallet", bare(nil))
	run("as a wallet, to a new account", bare(func(d *draft) {
		d.msgs[0] = a.from("bob", "nobody yet", coin("token", 1))
	}))
	run("as a wallet, multisend", bare(func(d *draft) { d.msgs = a.multisend(direct).msgs }))
	run("as a wallet, two messages", bare(func(d *draft) { d.msgs = append(d.msgs, d.msgs[0]) }))
	run("as a wallet, with fee", bare(func(d *draft) { d.noFee, d.gas = false, 200_000 }))
	run("as a wallet, gas 1", bare(func(d *draft) { d.gas = 1 }))
	run("as a wallet, fee above the balance", bare(func(d *draft) {
		d.noFee, d.fee = false, of(coin("stake", 2_000_000_000))
	}))
	run("as a wallet, amount above the balance", bare(func(d *draft) {
		d.msgs[0] = a.from("bob", "carol", coin("token", 2_000_000_000))
	}))
	run("as a wallet, wrong sequence", bare(func(d *draft) { d.signers[0].sequence = 4 }))
	run("as a wallet, amount of zero", bare(func(d *draft) {
		d.msgs[0] = a.from("bob", "carol", coin("token", 0))
	}))
	run("as a wallet, unknown signer", bare(func(d *draft) {
		d.msgs[0] = a.from("absent", "carol", coin("token", 1))
	}))
	run("as a wallet, first of its account", bare(func(d *draft) {
		d.msgs[0], d.signers = a.from("dave", "carol", coin("token", 1)), by("dave")
	}))
	run("as a wallet, amino", bare(func(d *draft) {
		d.auth = func(auth *txtypes.AuthInfo) { auth.SignerInfos[0].ModeInfo = mode(amino) }
	}))
	run("without key", bare(func(d *draft) {
		d.auth = func(auth *txtypes.AuthInfo) {
			auth.SignerInfos[0].ModeInfo = mode(direct)
			auth.SignerInfos[0].PublicKey = nil
		}
	}))
	run("without signatures", bare(func(d *draft) {
		d.raw = func(raw *txtypes.TxRaw) { raw.Signatures = nil }
	}))
	run("without mode", bare(func(d *draft) {
		d.auth = func(auth *txtypes.AuthInfo) { auth.SignerInfos[0].ModeInfo = nil }
	}))
	run("unknown type", bare(func(d *draft) {
		d.body = func(body *txtypes.TxBody) { body.Messages[0].TypeUrl = "/none.of.Ours" }
	}))
	run("signed", a.sign(a.send(nil)))
	run("signed, amino", a.sign(a.send(func(d *draft) { d.mode = amino })))
	run("signed wrongly", a.sign(a.send(func(d *draft) {
		d.raw = func(raw *txtypes.TxRaw) { raw.Signatures[0][5] ^= 1 }
	})))
	run("several keys", a.sign(a.send(func(d *draft) {
		d.msgs[0] = a.from("multi", "carol", coin("token", 1))
		d.mode, d.signers = amino, []signer{{name: "multi", with: []string{"alice", "bob"}}}
	})))
	run("garbage", []byte("garbage"))
	run("nothing", nil)
	var whole txtypes.Tx
	if err := a.codec.Unmarshal(a.sign(a.send(nil)), &whole); err == nil {
		a.of("simulate a decoded one", txService+"Simulate",
			&txtypes.SimulateRequest{Tx: &whole}, &txtypes.SimulateResponse{}, 0) //nolint:staticcheck
	}
}

func (a *asker) others() {
	a.of("node config", "/cosmos.base.node.v1beta1.Service/Config", &nodeservice.ConfigRequest{},
		&nodeservice.ConfigResponse{}, 0)
	a.of("node status", "/cosmos.base.node.v1beta1.Service/Status", &nodeservice.StatusRequest{},
		&nodeservice.StatusResponse{}, 0)
	for _, path := range []string{
		"", "/", "none", "/none", "/cosmos.bank.v1beta1.Query/None", "/cosmos.none.v1.Query/None",
		"cosmos.bank.v1beta1.Query/Params", "/cosmos.bank.v1beta1.Query/Params/",
		"/cosmos.bank.v1beta1.Msg/Send", "/app/version", "/app/simulate", "/app/none", "/app",
		"/custom/bank/balances", "/p2p/filter/addr/127.0.0.1:1", "/p2p/filter/id/abc", "/p2p/none",
		"/store", "/store/bank", "/store/none/key", "/store/bank/none", "/store/bank/subspace",
	} {
		a.raw("path "+path, path, nil, 0, false)
	}
	a.raw("simulate by the application", "/app/simulate", a.sign(a.send(nil)), 0, false)
	a.raw("simulate garbage by the application", "/app/simulate", []byte("garbage"), 0, false)
	for _, path := range []string{
		authQuery + "Account", authQuery + "Accounts", authQuery + "Params", bankQuery + "Balance",
		bankQuery + "AllBalances", bankQuery + "Params", txService + "Simulate",
		stakingQuery + "Pool",
	} {
		a.raw("garbage to "+path, path, []byte{0xff, 0xff}, 0, false)
		a.raw("half a field to "+path, path, []byte{10, 200}, 0, false)
		a.raw("an unknown field to "+path, path, unknown, 0, false)
		a.raw("nothing to "+path, path, nil, 0, false)
	}
	a.raw("before", bankQuery+"Params", nil, -1, false)
	a.raw("later", bankQuery+"Params", nil, a.height+1, false)
	a.raw("with proof", bankQuery+"Params", nil, 0, true)
	a.raw("with proof at 1", bankQuery+"Params", nil, 1, true)
	a.raw("with proof at 3", bankQuery+"Params", nil, 3, true)
}

func (a *asker) stores() {
	bob := a.world.address("bob")
	balance := append(append([]byte{2}, address.MustLengthPrefix(bob)...), "stake"...)
	for _, height := range []int64{0, 1, 2, a.height, a.height + 1, -1} {
		a.raw("account in the store", "/store/acc/key", append([]byte{1}, bob...), height, false)
		a.raw("balance in the store", "/store/bank/key", balance, height, false)
	}
	a.raw("supply in the store", "/store/bank/key", append([]byte{0}, "stake"...), 0, false)
	a.raw("params in the store", "/store/bank/key", []byte{5}, 0, false)
	a.raw("auth params in the store", "/store/acc/key", []byte{0}, 0, false)
	a.raw("account number in the store", "/store/acc/key", []byte("globalAccountNumber"), 0, false)
	a.raw("nothing in the store", "/store/bank/key", []byte("none"), 0, false)
	a.raw("no key in the store", "/store/bank/key", nil, 0, false)
}

func gasCases() map[string]func(*ledger) draft {
	return map[string]func(*ledger) draft{
		"send": func(l *ledger) draft { return l.send(nil) },
		"send, amino": func(l *ledger) draft {
			return l.send(func(d *draft) { d.mode = amino })
		},
		"send, no fee": func(l *ledger) draft {
			return l.send(func(d *draft) { d.noFee = true })
		},
		"send to a new account": func(l *ledger) draft {
			return l.send(func(d *draft) { d.msgs[0] = l.from("bob", "frank", coin("stake", 5)) })
		},
		"send of the owner whose key is known": func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("carol", "bob", coin("token", 1)), by("carol")
			})
		},
		"send all of a coin": func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("bob", "carol", coin("token", 1_000_000_000))
			})
		},
		"several coins": func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("bob", "carol", coin("stake", 3), coin("token", 4))
			})
		},
		"send to the owner of nothing": func(l *ledger) draft {
			return l.send(func(d *draft) { d.msgs[0] = l.from("bob", "erin", coin("token", 5)) })
		},
		"several signers": func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("alice", "bob", coin("stake", 1)))
				d.signers = by("bob", "alice")
			})
		},
		"multisend":        func(l *ledger) draft { return l.multisend(direct) },
		"multisend, amino": func(l *ledger) draft { return l.multisend(amino) },
		"two of three keys": func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("multi", "carol", coin("token", 7))
				d.signers = []signer{{name: "multi", with: []string{"alice", "bob"}}}
				d.mode = amino
			})
		},
	}
}
