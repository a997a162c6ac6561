"""Protobuf messages and REST paths of x/params; SDK: proto/cosmos/params."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message ParamChange { string subspace = 1; string key = 2; string value = 3; }
message Subspace { string subspace = 1; repeated string keys = 2; }
message params.ParamsRequest { string subspace = 1; string key = 2; }
message params.ParamsResponse { ParamChange! param = 1; }
message params.SubspacesRequest { }
message params.SubspacesResponse { repeated Subspace subspaces = 1; }
""")

ROUTES = """
GET /cosmos/params/v1beta1/params Params
GET /cosmos/params/v1beta1/subspaces Subspaces
"""
"""REST paths, and the query methods that they call."""
