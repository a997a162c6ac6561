package main

import (
	"time"

	"cosmossdk.io/x/feegrant"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	"github.com/cosmos/cosmos-sdk/x/authz"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/gogoproto/proto"
)

const (
	authzQuery = "/cosmos.authz.v1beta1.Query/"
	sendURL    = "/cosmos.bank.v1beta1.MsgSend"
	stakingURL = "/cosmos.staking.v1beta1."
)

func (n *network) authorize(
	from, to string, given proto.Message, until *time.Time,
) *authz.MsgGrant {
	made := &authz.MsgGrant{Granter: n.world.address(from).String(),
		Grantee: n.world.address(to).String(), Grant: authz.Grant{Expiration: until}}
	if given != nil {
		made.Grant.Authorization = anyOf(given)
	}
	return made
}

func (n *network) unauthorize(from, to, url string) *authz.MsgRevoke {
	return &authz.MsgRevoke{Granter: n.world.address(from).String(),
		Grantee: n.world.address(to).String(), MsgTypeUrl: url}
}

func (n *network) exec(who string, msgs ...proto.Message) *authz.MsgExec {
	made := &authz.MsgExec{Grantee: n.world.address(who).String()}
	for _, each := range msgs {
		made.Msgs = append(made.Msgs, anyOf(each))
	}
	return made
}

func (n *network) stakes(
	kind stakingtypes.AuthorizationType, limit int64, allowed, denied []string,
) *stakingtypes.StakeAuthorization {
	made := &stakingtypes.StakeAuthorization{AuthorizationType: kind}
	if limit > 0 {
		tokens := coin("stake", limit)
		made.MaxTokens = &tokens
	}
	if allowed != nil {
		made.Validators = &stakingtypes.StakeAuthorization_AllowList{
			AllowList: &stakingtypes.StakeAuthorization_Validators{Address: allowed}}
	}
	if denied != nil {
		made.Validators = &stakingtypes.StakeAuthorization_DenyList{
			DenyList: &stakingtypes.StakeAuthorization_Validators{Address: denied}}
	}
	return made
}

func (n *network) playAuthz() {
	n.playAuthorizations()
	n.playAuthorized()
	n.playAuthzErrors()
	n.playAuthzInTime()
}

func useAmino(d *draft) { d.mode = amino }

func (n *network) playAuthorizations() {
	send := &banktypes.SendAuthorization{SpendLimit: of(coin("stake", 100), coin("token", 50))}
	some := &banktypes.SendAuthorization{SpendLimit: of(coin("token", 70)), AllowList: []string{
		n.world.address("ivan").String(), n.world.address("erin").String()}}
	for at, each := range []struct {
		name, from string
		given      proto.Message
		until      *time.Time
	}{
		{"authorize sends", "alice", authz.NewGenericAuthorization(sendURL), n.in(time.Hour)},
		{"authorize a limit of sends", "bob", send, n.in(time.Hour)},
		{"authorize sends to some", "carol", some, nil},
		{"authorize delegations", "dave", n.stakes(1, 5_000_000,
			[]string{n.world.validator("alice"), n.world.validator("bob")}, nil), n.in(2 * time.Hour)},
		{"authorize undelegations", "alice", n.stakes(
			2, 0, nil, []string{n.world.validator("carol")}), n.in(2 * time.Hour)},
		{"authorize redelegations", "alice", n.stakes(3, 900, []string{}, nil), nil},
		{"authorize cancellations", "alice", n.stakes(4, 500, nil, []string{}), n.in(time.Hour)},
		{"authorize grants of fees", "alice", authz.NewGenericAuthorization(
			"/cosmos.feegrant.v1beta1.MsgGrantAllowance"), n.in(time.Hour)},
		{"authorize unjailing", "alice", authz.NewGenericAuthorization(
			"/cosmos.slashing.v1beta1.MsgUnjail"), nil},
		{"authorize authorized messages", "alice", authz.NewGenericAuthorization(
			"/cosmos.authz.v1beta1.MsgExec"), nil},
	} {
		n.add(each.name, each.from, nil, n.authorize(each.from, "grace", each.given, each.until))
		n.add(each.name+", amino", each.from, useAmino,
			n.authorize(each.from, "heidi", each.given, each.until))
		if at%3 == 2 {
			n.step()
		}
	}
	n.add("authorize a new account", "alice", nil, n.authorize(
		"alice", "third stranger", authz.NewGenericAuthorization(sendURL), nil))
	n.step()
	n.add("authorize again, later", "alice", nil, n.authorize(
		"alice", "grace", authz.NewGenericAuthorization(sendURL), n.in(3*time.Hour)))
	n.add("authorize again, without an end", "bob", nil, n.authorize("bob", "grace", send, nil))
	n.add("authorize again, with an end", "carol", nil,
		n.authorize("carol", "grace", some, n.in(time.Hour)))
	n.add("authorize again, at the same time", "dave", nil, n.authorize("dave", "grace",
		n.stakes(1, 6_000_000, []string{n.world.validator("alice")}, nil), n.in(2*time.Hour)))
	n.step()
}

func (n *network) playAuthorized() {
	from := func(who string, amount ...sdk.Coin) *banktypes.MsgSend {
		return n.from(who, "ivan", amount...)
	}
	for _, each := range []struct {
		name string
		msgs []proto.Message
	}{
		{"a send", []proto.Message{from("alice", coin("token", 5))}},
		{"a limited send", []proto.Message{from("bob", coin("stake", 60))}},
		{"a limited send of two coins", []proto.Message{
			from("bob", coin("stake", 40), coin("token", 20))}},
		{"a send to an address", []proto.Message{from("carol", coin("token", 30))}},
		{"the rest of the sends", []proto.Message{n.from("carol", "erin", coin("token", 40))}},
		{"a delegation", []proto.Message{n.delegate("dave", "alice", coin("stake", 2_000_000))}},
		{"an undelegation", []proto.Message{
			n.undelegate("alice", "alice", coin("stake", 700))}},
		{"a redelegation", []proto.Message{
			n.redelegate("alice", "alice", "bob", coin("stake", 400))}},
		{"an own message", []proto.Message{from("grace", coin("token", 5))}},
		{"several messages", []proto.Message{from("alice", coin("token", 1)),
			from("grace", coin("token", 2)), n.undelegate("alice", "alice", coin("stake", 1))}},
		{"a grant of fees", []proto.Message{
			n.grantFees("alice", "dave", &feegrant.BasicAllowance{})}},
		{"an authorized message inside", []proto.Message{
			n.exec("grace", from("alice", coin("token", 3)), from("grace", coin("token", 4)))}},
		{"an authorized message of another", []proto.Message{
			n.exec("alice", from("alice", coin("token", 3)))}},
	} {
		n.add("send as another: "+each.name, "grace", nil, n.exec("grace", each.msgs...))
		n.step()
	}
	n.add("send as another, amino", "heidi", useAmino, n.exec("heidi",
		from("alice", coin("token", 5)), n.delegate("dave", "bob", coin("stake", 5_000_000))))
	n.step()
	n.add("cancel as another", "grace", nil,
		n.exec("grace", n.cancel("alice", "alice", coin("stake", 300), n.height-7)))
	n.add("revoke an authorization", "alice", nil, n.unauthorize("alice", "heidi", sendURL))
	n.add("revoke an authorization, amino", "bob", useAmino, n.unauthorize("bob", "heidi", sendURL))
	n.add("several signers and an authorized message", "grace", func(d *draft) {
		d.signers = n.signers("grace", "heidi")
	}, n.exec("grace", from("alice", coin("token", 1))), from("heidi", coin("token", 1)))
	n.step()
}

func (n *network) playAuthzErrors() {
	from := func(who string, amount ...sdk.Coin) *banktypes.MsgSend {
		return n.from(who, "ivan", amount...)
	}
	grant := func(name string, given proto.Message) attempt {
		return attempt{"authorize: " + name, "ivan", n.authorize("ivan", "alice", given, nil)}
	}
	exec := func(name string, msgs ...proto.Message) attempt {
		return attempt{"send as another: " + name, "grace", n.exec("grace", msgs...)}
	}
	past, now := n.at.Add(-time.Hour), n.at
	generic := authz.NewGenericAuthorization(sendURL)
	bad := n.authorize("ivan", "alice", generic, nil)
	bad.Grantee = "nobody"
	upper := n.authorize("ivan", "ivan", generic, nil)
	upper.Grantee = "COSMOS" + upper.Grantee[6:]
	empty := n.authorize("ivan", "alice", nil, nil)
	empty.Grant.Authorization = &codectypes.Any{}
	badRevoke := n.unauthorize("ivan", "alice", sendURL)
	badRevoke.Grantee = "nobody"
	negative := coin("stake", 1)
	negative.Amount = negative.Amount.Neg()
	limit := n.stakes(1, 0, []string{}, nil)
	limit.MaxTokens = &negative
	inputs := banktypes.NewMsgMultiSend(
		banktypes.NewInput(n.world.address("alice"), of(coin("token", 1))),
		[]banktypes.Output{banktypes.NewOutput(n.world.address("ivan"), of(coin("token", 1)))})
	n.try(
		attempt{"authorize oneself", "ivan", n.authorize("ivan", "ivan", generic, nil)},
		attempt{"authorize oneself in capitals", "ivan", upper},
		attempt{"authorize an invalid address", "ivan", bad},
		attempt{"authorize nothing", "ivan", n.authorize("ivan", "alice", nil, nil)},
		attempt{"authorize an empty one", "ivan", empty},
		attempt{"authorize until the past", "ivan", n.authorize("ivan", "alice", generic, &past)},
		attempt{"authorize until now", "ivan", n.authorize("ivan", "alice", generic, &now)},
		grant("no message", authz.NewGenericAuthorization("")),
		grant("unknown messages", authz.NewGenericAuthorization("/cosmos.gov.v1.MsgVote")),
		grant("no limit", &banktypes.SendAuthorization{}),
		grant("a limit of zero", &banktypes.SendAuthorization{
			SpendLimit: sdk.Coins{coin("stake", 0)}}),
		grant("an address twice", &banktypes.SendAuthorization{SpendLimit: of(coin("stake", 1)),
			AllowList: []string{"one", "two", "one"}}),
		grant("no kind of staking", n.stakes(0, 0, []string{}, nil)),
		grant("an unknown kind of staking", n.stakes(9, 0, []string{}, nil)),
		grant("negative tokens", limit),
		attempt{"revoke what was not authorized", "ivan", n.unauthorize("ivan", "alice", sendURL)},
		attempt{"revoke no message", "ivan", n.unauthorize("ivan", "alice", "")},
		attempt{"revoke from oneself", "ivan", n.unauthorize("ivan", "ivan", sendURL)},
		attempt{"revoke from an invalid address", "ivan", badRevoke},
		exec("nothing"),
		exec("a message without authorization", from("ivan", coin("token", 1))),
		exec("more than the limit", from("bob", coin("token", 31))),
		exec("another coin", from("bob", coin("ibc", 1))),
		exec("an invalid amount", &banktypes.MsgSend{FromAddress: n.world.address("bob").String(),
			ToAddress: n.world.address("ivan").String(),
			Amount:    sdk.Coins{coin("token", 1), coin("token", 1)}}),
		exec("a message that fails", from("alice", coin("token", 5_000_000_000_000))),
		exec("a later message that fails", from("alice", coin("token", 1)),
			n.undelegate("alice", "bob", coin("stake", 5_000_000_000_000))),
		exec("a validator that is not allowed", n.delegate("dave", "carol", coin("stake", 1))),
		exec("a validator that is denied", n.undelegate("alice", "carol", coin("stake", 1))),
		exec("more tokens than allowed", n.delegate("dave", "alice", coin("stake", 4_000_001))),
		exec("tokens of another coin", n.delegate("dave", "alice", coin("token", 1))),
		exec("a message of several coins", inputs),
		exec("a message of an operator", &slashingtypes.MsgUnjail{
			ValidatorAddr: n.world.validator("alice")}),
		exec("an authorized message that is not", n.exec("ivan", from("ivan", coin("token", 1)))),
		attempt{"send as another: sends that ended", "heidi",
			n.exec("heidi", from("alice", coin("token", 1)))},
		attempt{"send as another: not enough gas", "grace", n.exec("grace",
			from("alice", coin("token", 1)))},
	)
	n.add("not enough gas for what is sent", "grace", func(d *draft) { d.gas = 60_000 },
		n.exec("grace", from("alice", coin("token", 1)), from("alice", coin("token", 1))))
	n.addRefused("an authorization of another type", "ivan", nil,
		n.authorize("ivan", "bob", &banktypes.MsgSend{}, nil))
	n.addRefused("an authorization in a message", "ivan", nil, n.exec("ivan", generic))
	n.addRefused("a message of one who did not sign", "ivan", func(d *draft) {
		d.signers = n.signers("heidi")
	}, n.exec("ivan", from("ivan", coin("token", 1))))
	n.step()
}

func (n *network) playAuthzInTime() {
	for at, wait := range []time.Duration{0, time.Second, time.Minute, time.Minute} {
		n.add("authorize for a while", "ivan", nil, n.authorize("ivan", "grace",
			authz.NewGenericAuthorization(sendURL), n.in(blockTime+time.Second+wait)))
		n.add("authorize more for a while", "ivan", nil, n.authorize("ivan", "grace",
			n.stakes(stakingtypes.AuthorizationType(1+at), 0, []string{}, nil),
			n.in(blockTime+time.Second+wait)))
		n.step()
		for range 3 {
			n.add("use it in time", "grace", nil,
				n.exec("grace", n.from("ivan", "bob", coin("token", 1))))
			n.step()
		}
	}
	n.wait = 4 * time.Hour
	n.step()
}

func (a *modulesAsker) authorizations() {
	for _, granter := range a.accountAddresses() {
		a.now(&authz.QueryGranterGrantsRequest{Granter: granter},
			&authz.QueryGranteeGrantsRequest{Grantee: granter})
		for _, grantee := range []string{"grace", "heidi"} {
			for _, url := range []string{"", sendURL, stakingURL + "MsgDelegate"} {
				request := &authz.QueryGrantsRequest{Granter: granter,
					Grantee: a.world.address(grantee).String(), MsgTypeUrl: url}
				a.at(100, request)
				a.now(request)
			}
		}
	}
	alice, grace := a.world.address("alice").String(), a.world.address("grace").String()
	a.now(&authz.QueryGrantsRequest{Granter: alice, Grantee: "nobody"})
	a.pages(authzQuery+"Grants", &authz.QueryGrantsResponse{},
		func(page *query.PageRequest) message {
			return &authz.QueryGrantsRequest{Granter: alice, Grantee: grace, Pagination: page}
		})
	a.pages(authzQuery+"GranterGrants", &authz.QueryGranterGrantsResponse{},
		func(page *query.PageRequest) message {
			return &authz.QueryGranterGrantsRequest{Granter: alice, Pagination: page}
		})
	a.pages(authzQuery+"GranteeGrants", &authz.QueryGranteeGrantsResponse{},
		func(page *query.PageRequest) message {
			return &authz.QueryGranteeGrantsRequest{Grantee: grace, Pagination: page}
		})
}
