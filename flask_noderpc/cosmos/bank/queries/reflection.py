"""The SDK's reflection services; SDK: client/grpc/reflection, server/grpc/reflection/v2alpha1.

Names are sorted, as the SDK returns them in no order.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from ....protocol.protobuf import string
from ...protocol.proto import ENUMS, MESSAGES
from ...protocol.responses import TX_TYPE
from ...protocol.sign_bytes import SUPPORTED
from ..messages import MSG_INTERFACE
from .request import Method, QueryContext, invalid


def _interfaces(ctx: QueryContext) -> bytes:
    return b"".join(string(1, name) for name in sorted(ctx.node.messages.interfaces))


def _types(ctx: QueryContext, interface: str) -> list[str]:
    return sorted(ctx.node.messages.interfaces.get(interface, ()))


def _implementations(ctx: QueryContext) -> bytes:
    name = ctx.request.text(1)
    if not name:
        raise invalid("invalid interface name")
    return b"".join(string(1, url) for url in _types(ctx, name))


def _authn(ctx: QueryContext) -> bytes:
    names = ENUMS["SignMode"]
    modes = [{"name": names[number], "number": number} for number in SUPPORTED]
    return MESSAGES.encode("descriptor.GetAuthnDescriptorResponse", authn={"sign_modes": modes})


def _chain(ctx: QueryContext) -> bytes:
    chain = {"id": ctx.environment.head.chain_id}
    return MESSAGES.encode("descriptor.GetChainDescriptorResponse", chain=chain)


def _codec(ctx: QueryContext) -> bytes:
    interfaces = [
        {
            "fullname": name,
            "interface_implementers": [
                {"fullname": url.removeprefix("/"), "type_url": url}
                for url in _types(ctx, name)
            ],
        }
        for name in sorted(ctx.node.messages.interfaces)
    ]
    codec = {"interfaces": interfaces}
    return MESSAGES.encode("descriptor.GetCodecDescriptorResponse", codec=codec)


def _configuration(ctx: QueryContext) -> bytes:
    config = {"bech32_account_address_prefix": ctx.codec.prefix}
    return MESSAGES.encode("descriptor.GetConfigurationDescriptorResponse", config=config)


def _tx(ctx: QueryContext) -> bytes:
    messages = [{"msg_type_url": url} for url in _types(ctx, MSG_INTERFACE)]
    tx = {"fullname": TX_TYPE.removeprefix("/"), "msgs": messages}
    return MESSAGES.encode("descriptor.GetTxDescriptorResponse", tx=tx)


def query_services(paths: Iterable[str]) -> bytes:
    """Return the encoded response that describes query methods, given by their paths."""
    services = [
        {
            "fullname": service.removeprefix("/"),
            "methods": [
                {"name": path.rpartition("/")[2], "full_query_path": path} for path in own
            ],
        }
        for service, own in groupby(sorted(paths), lambda path: path.rpartition("/")[0])
    ]
    return MESSAGES.encode(
        "descriptor.GetQueryServicesDescriptorResponse", queries={"query_services": services}
    )


METHODS: dict[str, Method] = {
    "v1beta1.ReflectionService/ListAllInterfaces": _interfaces,
    "v1beta1.ReflectionService/ListImplementations": _implementations,
    "v2alpha1.ReflectionService/GetAuthnDescriptor": _authn,
    "v2alpha1.ReflectionService/GetChainDescriptor": _chain,
    "v2alpha1.ReflectionService/GetCodecDescriptor": _codec,
    "v2alpha1.ReflectionService/GetConfigurationDescriptor": _configuration,
    "v2alpha1.ReflectionService/GetTxDescriptor": _tx,
}
"""Methods by path without ``/cosmos.base.reflection.``."""
