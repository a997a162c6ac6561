module noderpc.test/simgenesis

go 1.23.2

require (
	cosmossdk.io/x/circuit v0.2.0
	cosmossdk.io/x/evidence v0.2.0
	cosmossdk.io/x/feegrant v0.2.0
	cosmossdk.io/x/nft v0.2.0
	cosmossdk.io/x/upgrade v0.2.0
	github.com/bytedance/sonic v1.15.5 // 1.14 does not build with Go 1.26
	github.com/cosmos/cosmos-sdk v0.53.8
)
