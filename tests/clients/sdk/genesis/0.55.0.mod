module noderpc.test/simgenesis

go 1.26.5

require (
	github.com/cosmos/cosmos-sdk v0.55.0
)
