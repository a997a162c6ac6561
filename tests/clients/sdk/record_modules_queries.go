package main

import (
	"fmt"
	"strings"

	"cosmossdk.io/x/evidence/exported"
	evidencetypes "cosmossdk.io/x/evidence/types"
	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	minttypes "github.com/cosmos/cosmos-sdk/x/mint/types"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/gogoproto/proto"
)

// message is a request as generated from protobuf.
type message interface {
	proto.Message
	codec.ProtoMarshaler
}

// modulesAsker asks the queries of a network.
type modulesAsker struct {
	*asker
	network *network
	// absent is the address of an account that the chain does not know.
	absent string
}

func (n *network) ask() []queryRecord {
	a := &modulesAsker{&asker{ledger: n.ledger}, n, n.world.address("absent").String()}
	a.validators()
	a.delegations()
	a.rewards()
	a.slashing()
	a.evidence()
	a.simulations()
	a.malformed()
	return a.found
}

// at asks at a height; the path follows from the request's name.
func (a *modulesAsker) at(height int64, request message) {
	full := proto.MessageName(request)
	method := strings.TrimSuffix(full[strings.LastIndex(full, ".Query")+len(".Query"):], "Request")
	path := "/" + full[:strings.LastIndex(full, ".")] + ".Query/" + method
	text := must(a.codec.MarshalJSON(request))
	made := a.raw(fmt.Sprintf("%s %s at %d", method, text, height), path,
		must(proto.Marshal(request)), height, false)
	made.Request = text
}

func (a *modulesAsker) now(requests ...message) {
	for _, each := range requests {
		a.at(0, each)
	}
}

// pages asks for the pages, and for the second one by the key that the first one names.
func (a *modulesAsker) pages(
	path string, reply interface {
		codec.ProtoMarshaler
		GetPagination() *query.PageResponse
	}, make func(*query.PageRequest) message,
) {
	for _, name := range ordered(pages()) {
		if name != "without page" {
			a.now(make(pages()[name]))
		}
	}
	first := make(&query.PageRequest{Limit: 1})
	if err := a.asked(path, first, reply); err != nil {
		panic(err)
	}
	a.now(first, make(&query.PageRequest{Key: reply.GetPagination().NextKey, Limit: 1}),
		make(&query.PageRequest{Key: reply.GetPagination().NextKey, Reverse: true}))
}

// operatorAddresses are those of all validators, and invalid ones.
func (a *modulesAsker) operatorAddresses() []string {
	found := a.operatorsOnly()
	return append(found, sdk.ValAddress(sdk.MustAccAddressFromBech32(a.absent)).String(),
		a.world.address("alice").String(), "nobody", "")
}

func (a *modulesAsker) operatorsOnly() []string {
	var found []string
	for _, name := range ordered(a.world.words) {
		found = append(found, a.world.validator(name))
	}
	return found
}

// accountAddresses are those of all accounts, and invalid ones.
func (a *modulesAsker) accountAddresses() []string {
	var found []string
	for _, name := range ordered(a.world.words) {
		found = append(found, a.world.address(name).String())
	}
	return append(found, a.absent, a.world.validator("alice"), "nobody", "")
}

func (a *modulesAsker) validators() {
	for _, status := range []string{
		"", "BOND_STATUS_BONDED", "BOND_STATUS_UNBONDING", "BOND_STATUS_UNBONDED",
		"BOND_STATUS_UNSPECIFIED", "bonded",
	} {
		a.now(&stakingtypes.QueryValidatorsRequest{Status: status})
	}
	a.now(&stakingtypes.QueryValidatorsRequest{Status: "BOND_STATUS_BONDED",
		Pagination: &query.PageRequest{Limit: 2, CountTotal: true}})
	a.pages(stakingQuery+"Validators", &stakingtypes.QueryValidatorsResponse{},
		func(page *query.PageRequest) message {
			return &stakingtypes.QueryValidatorsRequest{Pagination: page}
		})
	for _, of := range a.operatorAddresses() {
		a.now(&stakingtypes.QueryValidatorRequest{ValidatorAddr: of},
			&stakingtypes.QueryValidatorDelegationsRequest{ValidatorAddr: of},
			&stakingtypes.QueryValidatorUnbondingDelegationsRequest{ValidatorAddr: of})
	}
	of := a.world.validator("bob")
	a.pages(stakingQuery+"ValidatorDelegations",
		&stakingtypes.QueryValidatorDelegationsResponse{},
		func(page *query.PageRequest) message {
			return &stakingtypes.QueryValidatorDelegationsRequest{
				ValidatorAddr: of, Pagination: page}
		})
	a.pages(stakingQuery+"ValidatorUnbondingDelegations",
		&stakingtypes.QueryValidatorUnbondingDelegationsResponse{},
		func(page *query.PageRequest) message {
			return &stakingtypes.QueryValidatorUnbondingDelegationsRequest{
				ValidatorAddr: of, Pagination: page}
		})
	for _, height := range []int64{0, 1, 100, a.height, a.height + 1} {
		a.at(height, &stakingtypes.QueryValidatorRequest{ValidatorAddr: of})
		a.at(height, &stakingtypes.QueryPoolRequest{})
		a.at(height, &stakingtypes.QueryParamsRequest{})
	}
	a.at(100, &stakingtypes.QueryValidatorsRequest{})
	for _, height := range []int64{-1, 0, 1, 2, 100, a.height, a.height + 1} {
		a.now(&stakingtypes.QueryHistoricalInfoRequest{Height: height})
	}
}

func (a *modulesAsker) delegations() {
	heidi, bob := a.world.address("heidi").String(), a.world.validator("bob")
	for _, of := range a.accountAddresses() {
		a.now(&stakingtypes.QueryDelegatorDelegationsRequest{DelegatorAddr: of},
			&stakingtypes.QueryDelegatorUnbondingDelegationsRequest{DelegatorAddr: of},
			&stakingtypes.QueryDelegatorValidatorsRequest{DelegatorAddr: of},
			&stakingtypes.QueryRedelegationsRequest{DelegatorAddr: of},
			&stakingtypes.QueryDelegationRequest{DelegatorAddr: of, ValidatorAddr: bob},
			&stakingtypes.QueryUnbondingDelegationRequest{DelegatorAddr: of, ValidatorAddr: bob},
			&stakingtypes.QueryDelegatorValidatorRequest{DelegatorAddr: of, ValidatorAddr: bob})
	}
	for _, of := range a.operatorAddresses() {
		a.now(
			&stakingtypes.QueryDelegationRequest{DelegatorAddr: heidi, ValidatorAddr: of},
			&stakingtypes.QueryUnbondingDelegationRequest{DelegatorAddr: heidi, ValidatorAddr: of},
			&stakingtypes.QueryDelegatorValidatorRequest{DelegatorAddr: heidi, ValidatorAddr: of},
			&stakingtypes.QueryRedelegationsRequest{SrcValidatorAddr: of},
			&stakingtypes.QueryRedelegationsRequest{DelegatorAddr: heidi, SrcValidatorAddr: of},
			&stakingtypes.QueryRedelegationsRequest{DelegatorAddr: heidi, DstValidatorAddr: of},
			&stakingtypes.QueryRedelegationsRequest{DelegatorAddr: heidi,
				SrcValidatorAddr: a.world.validator("heidi"), DstValidatorAddr: of})
	}
	a.pages(stakingQuery+"DelegatorDelegations",
		&stakingtypes.QueryDelegatorDelegationsResponse{},
		func(page *query.PageRequest) message {
			return &stakingtypes.QueryDelegatorDelegationsRequest{
				DelegatorAddr: heidi, Pagination: page}
		})
	a.pages(stakingQuery+"DelegatorUnbondingDelegations",
		&stakingtypes.QueryDelegatorUnbondingDelegationsResponse{},
		func(page *query.PageRequest) message {
			return &stakingtypes.QueryDelegatorUnbondingDelegationsRequest{
				DelegatorAddr: heidi, Pagination: page}
		})
	a.pages(stakingQuery+"DelegatorValidators", &stakingtypes.QueryDelegatorValidatorsResponse{},
		func(page *query.PageRequest) message {
			return &stakingtypes.QueryDelegatorValidatorsRequest{
				DelegatorAddr: heidi, Pagination: page}
		})
	a.pages(stakingQuery+"Redelegations", &stakingtypes.QueryRedelegationsResponse{},
		func(page *query.PageRequest) message {
			return &stakingtypes.QueryRedelegationsRequest{DelegatorAddr: heidi, Pagination: page}
		})
	for _, height := range []int64{1, 100} {
		a.at(height, &stakingtypes.QueryDelegatorDelegationsRequest{DelegatorAddr: heidi})
		a.at(height, &stakingtypes.QueryDelegatorUnbondingDelegationsRequest{DelegatorAddr: heidi})
		a.at(height, &stakingtypes.QueryDelegationRequest{DelegatorAddr: heidi, ValidatorAddr: bob})
		a.at(height, &distrtypes.QueryDelegationTotalRewardsRequest{DelegatorAddress: heidi})
	}
}

func (a *modulesAsker) rewards() {
	heidi, bob := a.world.address("heidi").String(), a.world.validator("bob")
	a.now(&distrtypes.QueryParamsRequest{}, &distrtypes.QueryCommunityPoolRequest{},
		&minttypes.QueryParamsRequest{}, &minttypes.QueryInflationRequest{},
		&minttypes.QueryAnnualProvisionsRequest{})
	a.at(100, &distrtypes.QueryCommunityPoolRequest{})
	a.at(100, &minttypes.QueryInflationRequest{})
	a.at(1, &minttypes.QueryAnnualProvisionsRequest{})
	for _, of := range a.operatorAddresses() {
		a.now(&distrtypes.QueryValidatorDistributionInfoRequest{ValidatorAddress: of},
			&distrtypes.QueryValidatorOutstandingRewardsRequest{ValidatorAddress: of},
			&distrtypes.QueryValidatorCommissionRequest{ValidatorAddress: of},
			&distrtypes.QueryValidatorSlashesRequest{
				ValidatorAddress: of, EndingHeight: uint64(a.height)},
			&distrtypes.QueryDelegationRewardsRequest{
				DelegatorAddress: heidi, ValidatorAddress: of})
	}
	for _, of := range a.accountAddresses() {
		a.now(&distrtypes.QueryDelegationRewardsRequest{
			DelegatorAddress: of, ValidatorAddress: bob},
			&distrtypes.QueryDelegationTotalRewardsRequest{DelegatorAddress: of},
			&distrtypes.QueryDelegatorValidatorsRequest{DelegatorAddress: of},
			&distrtypes.QueryDelegatorWithdrawAddressRequest{DelegatorAddress: of})
	}
	slashed := a.world.validator("dave")
	for _, heights := range [][2]uint64{{0, 0}, {1, 10}, {60, 70}, {70, 60}, {0, 1 << 63}} {
		a.now(&distrtypes.QueryValidatorSlashesRequest{ValidatorAddress: slashed,
			StartingHeight: heights[0], EndingHeight: heights[1]})
	}
	a.pages(distrQuery+"ValidatorSlashes", &distrtypes.QueryValidatorSlashesResponse{},
		func(page *query.PageRequest) message {
			return &distrtypes.QueryValidatorSlashesRequest{
				ValidatorAddress: a.world.validator("carol"), EndingHeight: uint64(a.height),
				Pagination: page}
		})
}

func (a *modulesAsker) slashing() {
	a.now(&slashingtypes.QueryParamsRequest{}, &slashingtypes.QuerySigningInfosRequest{})
	for _, name := range ordered(a.world.words) {
		a.now(&slashingtypes.QuerySigningInfoRequest{
			ConsAddress: sdk.ConsAddress(consensusKey(name).PubKey().Address()).String()})
	}
	for _, of := range []string{
		sdk.ConsAddress(consensusKey("nobody").PubKey().Address()).String(),
		a.world.validator("alice"), "nobody", "",
	} {
		a.now(&slashingtypes.QuerySigningInfoRequest{ConsAddress: of})
	}
	a.at(1, &slashingtypes.QuerySigningInfosRequest{})
	a.pages("/cosmos.slashing.v1beta1.Query/SigningInfos",
		&slashingtypes.QuerySigningInfosResponse{}, func(page *query.PageRequest) message {
			return &slashingtypes.QuerySigningInfosRequest{Pagination: page}
		})
}

func (a *modulesAsker) evidence() {
	path := "/cosmos.evidence.v1beta1.Query/AllEvidence"
	a.now(&evidencetypes.QueryAllEvidenceRequest{})
	a.at(1, &evidencetypes.QueryAllEvidenceRequest{})
	var all evidencetypes.QueryAllEvidenceResponse
	a.pages(path, &all, func(page *query.PageRequest) message {
		return &evidencetypes.QueryAllEvidenceRequest{Pagination: page}
	})
	var first exported.Evidence
	if err := a.registry.UnpackAny(all.Evidence[0], &first); err != nil {
		panic(err)
	}
	hash := first.(*evidencetypes.Equivocation).Hash()
	for _, each := range []string{
		fmt.Sprintf("%X", hash), fmt.Sprintf("%x", hash), fmt.Sprintf("0x%X", hash),
		strings.Repeat("00", 32), "00", "x", "",
	} {
		a.now(&evidencetypes.QueryEvidenceRequest{Hash: each})
	}
	a.now(&evidencetypes.QueryEvidenceRequest{EvidenceHash: hash}) //nolint:staticcheck
}

// simulations ask for the gas of one transaction of each type, as wallets do.
func (a *modulesAsker) simulations() {
	n := a.network
	for _, each := range []attempt{
		{"send", "heidi", n.from("heidi", "bob", coin("token", 1))},
		{"delegate", "heidi", n.delegate("heidi", "alice", coin("stake", 1_000_000))},
		{"delegate to another", "heidi", n.delegate("heidi", "grace", coin("stake", 1_000_000))},
		{"delegate too much", "heidi", n.delegate("heidi", "alice", coin("stake", 1<<60))},
		{"undelegate", "heidi", n.undelegate("heidi", "bob", coin("stake", 1_000_000))},
		{"undelegate too much", "heidi", n.undelegate("heidi", "bob", coin("stake", 1<<60))},
		{"redelegate", "heidi", n.redelegate("heidi", "heidi", "carol", coin("stake", 1_000_000))},
		{"redelegate transitively", "heidi",
			n.redelegate("heidi", "bob", "carol", coin("stake", 1_000_000))},
		{"withdraw", "heidi", n.withdraw("heidi", "bob")},
		{"withdraw address", "heidi", n.withdrawTo("heidi", "heidi")},
		{"withdraw address of a module", "heidi", n.withdrawTo("heidi", "mint")},
		{"commission", "alice", n.commission("alice")},
		{"commission of no validator", "heidi", n.commission("heidi")},
		{"fund", "heidi", n.fund("heidi", coin("stake", 1))},
		{"deposit", "heidi", n.deposit("heidi", "alice", coin("stake", 1))},
		{"create a validator", "ivan", n.world.create("ivan", 1_000_000)},
		{"create a second validator", "heidi", n.world.create("heidi", 1_000_000)},
		{"edit", "alice", n.editMinimum("alice", 2)},
		{"unjail", "frank", n.unjail("frank")},
		{"unjail a tombstoned validator", "erin", n.unjail("erin")},
	} {
		raw := a.sign(draft{
			msgs: []proto.Message{each.msg}, noFee: true, signers: by(each.who),
			auth: func(auth *txtypes.AuthInfo) {
				auth.SignerInfos[0].ModeInfo = mode(signing.SignMode_SIGN_MODE_UNSPECIFIED)
			},
			raw: func(raw *txtypes.TxRaw) { raw.Signatures[0] = []byte{} },
		})
		a.raw("simulate "+each.name, txService+"Simulate",
			must(proto.Marshal(&txtypes.SimulateRequest{TxBytes: raw})), 0, false)
	}
}

// malformed sends bytes that are not a request to each path that was asked.
func (a *modulesAsker) malformed() {
	seen := map[string]bool{}
	for _, each := range a.found {
		seen[each.Path] = true
	}
	for _, path := range ordered(seen) {
		a.raw("garbage to "+path, path, []byte{0xff, 0xff}, 0, false)
		a.raw("half a field to "+path, path, []byte{10, 200}, 0, false)
		a.raw("an unknown field to "+path, path, unknown, 0, false)
		a.raw("nothing to "+path, path, nil, 0, false)
	}
}
