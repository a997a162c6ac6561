package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"cosmossdk.io/x/feegrant"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/gogoproto/proto"
)

// The recording's form is documented in tests/clients/record_grants.py.

func recordGrants(out io.Writer) error {
	world, err := newModulesWorld(options{rewards: true, slashing: true, grants: true})
	if err != nil {
		return err
	}
	made, err := newNetwork(world)
	if err != nil {
		return err
	}
	made.playGrants()
	made.recorded.Queries = made.askGrants()
	written := json.NewEncoder(out)
	written.SetEscapeHTML(false)
	written.SetIndent("", " ")
	return written.Encode(made.recorded)
}

func anyOf(msg proto.Message) *codectypes.Any { return must(codectypes.NewAnyWithValue(msg)) }

func (n *network) grantFees(from, to string, allowance proto.Message) *feegrant.MsgGrantAllowance {
	made := &feegrant.MsgGrantAllowance{Granter: n.world.address(from).String(),
		Grantee: n.world.address(to).String()}
	if allowance != nil {
		made.Allowance = anyOf(allowance)
	}
	return made
}

func (n *network) revokeFees(from, to string) *feegrant.MsgRevokeAllowance {
	return &feegrant.MsgRevokeAllowance{Granter: n.world.address(from).String(),
		Grantee: n.world.address(to).String()}
}

func (n *network) in(wait time.Duration) *time.Time {
	found := n.at.Add(wait)
	return &found
}

// granted makes a transaction whose fee another account pays.
func granted(by sdk.AccAddress, fee ...sdk.Coin) func(*draft) {
	return func(d *draft) {
		d.granter = by.String()
		if len(fee) > 0 {
			d.fee = sdk.Coins(fee)
		}
	}
}

func (n *network) playGrants() {
	n.step()
	n.step()
	n.playFeeGrants()
	n.playFeeGrantErrors()
	n.playFeeGrantsInTime()
	n.playAuthz()
	for n.height%20 != 0 {
		n.step()
	}
}

func (n *network) playFeeGrants() {
	alice, bob := n.world.address("alice"), n.world.address("bob")
	stake := func(amount int64) sdk.Coins { return of(coin("stake", amount)) }
	basic := &feegrant.BasicAllowance{SpendLimit: of(coin("stake", 10_000), coin("token", 500))}
	limited := &feegrant.BasicAllowance{SpendLimit: stake(5000), Expiration: n.in(time.Hour)}
	periodic := &feegrant.PeriodicAllowance{
		Basic:  feegrant.BasicAllowance{SpendLimit: stake(7000), Expiration: n.in(3 * time.Hour)},
		Period: time.Minute, PeriodSpendLimit: stake(3000), PeriodCanSpend: stake(3000),
		PeriodReset: *n.in(time.Minute)}
	endless := &feegrant.PeriodicAllowance{Period: 30 * time.Second,
		PeriodSpendLimit: of(coin("stake", 4000), coin("token", 9)), PeriodCanSpend: stake(1)}
	sends := &feegrant.AllowedMsgAllowance{Allowance: anyOf(limited), AllowedMessages: []string{
		"/cosmos.bank.v1beta1.MsgSend", "/cosmos.feegrant.v1beta1.MsgRevokeAllowance"}}
	nested := &feegrant.AllowedMsgAllowance{Allowance: anyOf(sends),
		AllowedMessages: []string{"/cosmos.bank.v1beta1.MsgSend"}}
	n.add("grant a limit", "alice", nil, n.grantFees("alice", "grace", basic))
	n.add("grant a limit, amino", "bob", useAmino, n.grantFees("bob", "grace", limited))
	n.add("grant each period", "carol", nil, n.grantFees("carol", "heidi", periodic))
	n.add("grant each period, amino", "dave", useAmino, n.grantFees("dave", "heidi", endless))
	n.add("grant for some messages", "erin", nil, n.grantFees("erin", "grace", sends))
	n.add("grant for some messages, amino", "frank", useAmino,
		n.grantFees("frank", "grace", nested))
	n.step()
	n.add("grant anything to a new account", "grace", nil,
		n.grantFees("grace", "stranger", &feegrant.BasicAllowance{}))
	n.add("grant for a time to a new account", "grace", nil, n.grantFees(
		"grace", "second stranger", &feegrant.BasicAllowance{Expiration: n.in(time.Minute)}))
	n.add("grant to a module", "grace", nil,
		n.grantFees("grace", "mint", &feegrant.BasicAllowance{}))
	n.add("use a limit", "grace", granted(alice, coin("stake", 4000)),
		n.from("grace", "ivan", coin("token", 5)))
	n.add("use a limit, amino", "grace", func(d *draft) {
		granted(bob)(d)
		d.mode = amino
	}, n.from("grace", "ivan", coin("token", 5)))
	n.step()
	n.add("use it with two coins", "grace",
		granted(alice, coin("stake", 1000), coin("token", 499)),
		n.from("grace", "ivan", coin("token", 5)))
	n.add("use it without a fee", "grace", func(d *draft) {
		granted(alice)(d)
		d.noFee = true
	}, n.from("grace", "ivan", coin("token", 5)))
	n.add("own grants need none", "grace", granted(n.world.address("grace")),
		n.from("grace", "ivan", coin("token", 5)))
	n.add("use it for an allowed message", "grace", granted(n.world.address("erin")),
		n.from("grace", "ivan", coin("token", 5)))
	n.add("use it for messages that two grants allow", "grace",
		granted(n.world.address("frank")), n.from("grace", "ivan", coin("token", 5)),
		n.from("grace", "ivan", coin("token", 6)))
	n.step()
	n.add("the message fails", "grace", granted(alice, coin("stake", 1)),
		n.from("grace", "ivan", coin("token", 5_000_000_000_000)))
	n.add("the rest of it", "grace", granted(alice, coin("stake", 4999), coin("token", 1)),
		n.from("grace", "ivan", coin("token", 5)))
	n.step()
	n.add("revoke", "bob", nil, n.revokeFees("bob", "grace"))
	n.add("revoke, amino", "frank", useAmino, n.revokeFees("frank", "grace"))
	n.add("prune", "carol", nil, &feegrant.MsgPruneAllowances{
		Pruner: n.world.address("carol").String()})
	n.add("prune, amino", "carol", useAmino, &feegrant.MsgPruneAllowances{
		Pruner: n.world.address("carol").String()})
	n.step()
	n.add("grant it again", "bob", nil, n.grantFees("bob", "grace", limited))
	n.add("the fee's payer has the grant", "grace", func(d *draft) {
		d.payer = n.world.address("heidi").String()
		granted(n.world.address("carol"), coin("stake", 10))(d)
		d.signers = n.signers("grace", "heidi")
	}, n.from("grace", "ivan", coin("token", 5)))
	n.step()
}

func (n *network) playFeeGrantErrors() {
	grant := func(name string, allowance proto.Message) attempt {
		return attempt{name, "ivan", n.grantFees("ivan", "alice", allowance)}
	}
	stake := of(coin("stake", 10))
	negative := sdk.Coins{{Denom: "stake", Amount: coin("stake", 1).Amount.Neg()}}
	unsorted := sdk.Coins{coin("token", 1), coin("stake", 1)}
	old := time.Date(1960, 1, 2, 3, 4, 5, 6, time.UTC)
	past := n.at.Add(-time.Second)
	periodic := func(change func(*feegrant.PeriodicAllowance)) *feegrant.PeriodicAllowance {
		return changedMessage(&feegrant.PeriodicAllowance{Period: time.Minute,
			PeriodSpendLimit: stake, PeriodCanSpend: stake, PeriodReset: n.at}, change)
	}
	bad := n.grantFees("ivan", "alice", &feegrant.BasicAllowance{})
	bad.Grantee = "nobody"
	upper := n.grantFees("ivan", "ivan", &feegrant.BasicAllowance{})
	upper.Grantee = "COSMOS" + upper.Grantee[6:]
	n.try(
		attempt{"grant to oneself", "ivan",
			n.grantFees("ivan", "ivan", &feegrant.BasicAllowance{})},
		attempt{"grant to oneself in capitals", "ivan", upper},
		attempt{"grant to an invalid address", "ivan", bad},
		attempt{"grant what exists", "erin", n.grantFees("erin", "grace", &feegrant.BasicAllowance{})},
		attempt{"revoke what does not exist", "ivan", n.revokeFees("ivan", "grace")},
		attempt{"revoke from oneself", "ivan", n.revokeFees("ivan", "ivan")},
		grant("no allowance", nil),
		grant("a limit of nothing", &feegrant.BasicAllowance{SpendLimit: sdk.Coins{coin("stake", 0)}}),
		grant("a negative limit", &feegrant.BasicAllowance{SpendLimit: negative}),
		grant("an unsorted limit", &feegrant.BasicAllowance{SpendLimit: unsorted}),
		grant("an early expiration", &feegrant.BasicAllowance{Expiration: &old}),
		grant("an expiration in the past", &feegrant.BasicAllowance{Expiration: &past}),
		grant("periods of nothing", periodic(func(p *feegrant.PeriodicAllowance) {
			p.PeriodSpendLimit = nil
		})),
		grant("an unsorted limit of periods", periodic(func(p *feegrant.PeriodicAllowance) {
			p.PeriodSpendLimit = unsorted
		})),
		grant("a negative rest", periodic(func(p *feegrant.PeriodicAllowance) {
			p.PeriodCanSpend = negative
		})),
		grant("other coins in periods", periodic(func(p *feegrant.PeriodicAllowance) {
			p.Basic.SpendLimit = of(coin("token", 5))
		})),
		grant("a negative period", periodic(func(p *feegrant.PeriodicAllowance) {
			p.Period = -time.Second
		})),
		grant("no messages", &feegrant.AllowedMsgAllowance{
			Allowance: anyOf(&feegrant.BasicAllowance{})}),
		grant("messages without an allowance", &feegrant.AllowedMsgAllowance{
			AllowedMessages: []string{"/cosmos.bank.v1beta1.MsgSend"}}),
		grant("an invalid allowance inside", &feegrant.AllowedMsgAllowance{
			Allowance:       anyOf(&feegrant.BasicAllowance{SpendLimit: negative}),
			AllowedMessages: []string{"/cosmos.bank.v1beta1.MsgSend"}}),
		grant("no reset", periodic(func(p *feegrant.PeriodicAllowance) {
			p.PeriodReset = time.Time{}
		})),
	)
	n.addRefused("an allowance of another type", "ivan", nil,
		n.grantFees("ivan", "bob", &banktypes.MsgSend{}))
	send := n.from("grace", "ivan", coin("token", 5))
	for _, each := range []struct {
		name, granter string
		fee           []sdk.Coin
		msg           proto.Message
	}{
		{"no grant", "carol", nil, send},
		{"no such account", "nobody", nil, send},
		{"a fee above the limit", "bob", []sdk.Coin{coin("stake", 5001)}, send},
		{"a fee of another coin", "bob", []sdk.Coin{coin("token", 1)}, send},
		{"a message that is not allowed", "erin", nil, n.grantFees("grace", "bob", nil)},
		{"an invalid fee", "bob", []sdk.Coin{coin("token", 1), coin("stake", 1)}, send},
		{"a fee that is listed twice", "bob", []sdk.Coin{coin("stake", 1), coin("stake", 1)}, send},
	} {
		n.addRefused(each.name, "grace", granted(n.world.address(each.granter), each.fee...), each.msg)
		n.step()
	}
	n.addRefused("an invalid granter", "grace", func(d *draft) { d.granter = "nobody" }, send)
	n.addRefused("gas for a grant", "grace", func(d *draft) {
		granted(n.world.address("bob"))(d)
		d.gas = 25_000
	}, send)
	n.step()
}

func (n *network) playFeeGrantsInTime() {
	heidi := func(name, granter string, fee int64) {
		n.addRefused(name, "heidi", granted(n.world.address(granter), coin("stake", fee)),
			n.from("heidi", "ivan", coin("token", 1)))
	}
	for _, wait := range []time.Duration{
		blockTime, 20 * time.Second, 45 * time.Second, time.Minute, 5 * time.Minute, time.Second,
		30 * time.Second, time.Hour, time.Minute, 3 * time.Hour, blockTime,
	} {
		n.wait = wait
		heidi("use a part of the period", "carol", 1500)
		n.step()
		heidi("use another part of the period", "carol", 1400)
		n.step()
		heidi("use a period without a limit", "dave", 2500)
		n.step()
		heidi("use another period without a limit", "dave", 1501)
		n.step()
	}
	n.add("a grant that ends soon", "grace", nil, n.grantFees("grace", "bob",
		&feegrant.BasicAllowance{Expiration: n.in(2 * blockTime)}))
	n.add("another grant that ends soon", "grace", nil, n.grantFees("grace", "carol",
		&feegrant.AllowedMsgAllowance{AllowedMessages: []string{"/cosmos.bank.v1beta1.MsgSend"},
			Allowance: anyOf(&feegrant.BasicAllowance{Expiration: n.in(3 * blockTime)})}))
	n.step()
	for range 5 {
		n.addRefused("use it in time", "bob", granted(n.world.address("grace")),
			n.from("bob", "ivan", coin("token", 1)))
		n.add("prune in time", "dave", nil, &feegrant.MsgPruneAllowances{
			Pruner: n.world.address("dave").String()})
		n.step()
	}
}

const feegrantQuery = "/cosmos.feegrant.v1beta1.Query/"

func (n *network) askGrants() []queryRecord {
	a := &modulesAsker{&asker{ledger: n.ledger}, n, n.world.address("absent").String()}
	for _, granter := range a.accountAddresses() {
		a.now(&feegrant.QueryAllowancesRequest{Grantee: granter},
			&feegrant.QueryAllowancesByGranterRequest{Granter: granter})
		for _, grantee := range []string{"grace", "heidi", "stranger"} {
			request := &feegrant.QueryAllowanceRequest{
				Granter: granter, Grantee: n.world.address(grantee).String()}
			a.at(8, request)
			a.now(request)
		}
	}
	a.now(&feegrant.QueryAllowanceRequest{Granter: n.world.address("alice").String(),
		Grantee: "nobody"})
	grace := n.world.address("grace").String()
	a.pages(feegrantQuery+"Allowances", &feegrant.QueryAllowancesResponse{},
		func(page *query.PageRequest) message {
			return &feegrant.QueryAllowancesRequest{Grantee: grace, Pagination: page}
		})
	a.pages(feegrantQuery+"AllowancesByGranter", &feegrant.QueryAllowancesByGranterResponse{},
		func(page *query.PageRequest) message {
			return &feegrant.QueryAllowancesByGranterRequest{Granter: grace, Pagination: page}
		})
	a.authorizations()
	a.addresses()
	return a.found
}

func (a *modulesAsker) addresses() {
	const query = "/cosmos.auth.v1beta1.Query/"
	alice := a.world.address("alice")
	for _, each := range []sdk.AccAddress{alice, {7}, {}, make([]byte, 256)} {
		a.raw(fmt.Sprintf("AddressBytesToString of %d bytes", len(each)), query+"AddressBytesToString",
			must(proto.Marshal(&authtypes.AddressBytesToStringRequest{AddressBytes: each})), 0, false)
	}
	for _, each := range []string{
		alice.String(), a.world.validator("alice"), "nobody", "", "  ", "cosmos1"} {
		a.raw("AddressStringToBytes of "+each, query+"AddressStringToBytes",
			must(proto.Marshal(&authtypes.AddressStringToBytesRequest{AddressString: each})), 0, false)
	}
}
