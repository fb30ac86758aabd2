"""Which addresses the site may connect to: public ones, and what the operator lists. Pure.

PTXBOARD_ENDPOINT_HOSTS opens more than the public internet: `name` (any port, plain http, private
addresses), `name:port`, `address`, `network/bits`. A listed name is trusted whatever it points to.

What a refusal says does not depend on whether something listens: a name that does not exist reads
the same as one that points inside.

Source: special-purpose addresses from the IANA registries by way of `ipaddress`; see _REFUSED.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import httpx2

from leaderboard.endpoints.errors import EndpointError, ErrorKind

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = frozenset({443, 8443})

_HOST = re.compile(r"[a-z0-9_.:-]+")

# Beyond what `is_global` leaves out, on any version of Python: forms that carry an IPv4 address in
# an IPv6 one, shared address space, and a public address that clouds serve metadata from.
_REFUSED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "100.64.0.0/10",  # carrier-grade NAT, RFC 6598
        "168.63.129.16/32",  # Azure's host, reachable from every virtual machine there
        "192.0.0.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fec0::/10",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The operator's list: (host, port or None for any) pairs, and networks."""

    hosts: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, entries: Iterable[str]) -> "Allowed":
        """Raises ValueError for an entry that is no host, host:port or network."""
        hosts: set[tuple[str, int | None]] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                hosts.add(_host_entry(entry))
        return cls(hosts=frozenset(hosts), networks=tuple(networks))

    def names(self, host: str, port: int) -> bool:
        return (host, None) in self.hosts or (host, port) in self.hosts

    def holds(self, addresses: Sequence[Address]) -> bool:
        return all(any(address in net for net in self.networks) for address in addresses)


def _host_entry(entry: str) -> tuple[str, int | None]:
    try:
        # https, since a URL forgets its scheme's own port: nobody lists host:443, which is open
        url = httpx2.URL(f"https://{entry}")
    except httpx2.InvalidURL:
        url = httpx2.URL("")
    if (
        not _HOST.fullmatch(host_of(url))
        or url.path != "/"
        or url.userinfo
        or url.query
        or url.fragment
    ):
        raise ValueError(
            f"PTXBOARD_ENDPOINT_HOSTS holds {entry!r}; use host, host:port, an address, or a "
            "network such as 10.1.0.0/16"
        )
    return host_of(url), 443 if entry.endswith(":443") else url.port


def host_of(url: httpx2.URL) -> str:
    """The host as it is looked up: ASCII, lower case, international names encoded."""
    return url.raw_host.decode("ascii")


def port_of(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def check_text(text: str, allowed: Allowed) -> None:
    """What an address shows without asking a name server; a call judges again what it connects to.

    Raises EndpointError REFUSED_ADDRESS.
    """
    try:
        url = httpx2.URL(text.strip())
    except httpx2.InvalidURL:
        url = httpx2.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        _refuse("the endpoint's address is not a URL such as https://api.example.org/v1")
    if url.userinfo or "@" in text or "?" in text or "#" in text:
        _refuse("the endpoint's address holds a user name, a query or a fragment; leave them out")
    check_url(url, allowed)
    if (literal := _literal(host_of(url))) is not None:
        judge(url, [literal], allowed)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def check_url(url: httpx2.URL, allowed: Allowed) -> None:
    """Raises unless a public host may be called so, or an entry of the operator may open it."""
    if allowed.names(host_of(url), port_of(url)) or allowed.networks:
        return
    if url.scheme != "https":
        _refuse("plain http is only for hosts that the operator allows; use https")
    if port_of(url) not in PORTS:
        known = " or ".join(str(number) for number in sorted(PORTS))
        _refuse(f"port {port_of(url)} is only for hosts that the operator allows; use {known}")


def judge(url: httpx2.URL, found: Sequence[Address], allowed: Allowed) -> None:
    """Whether `url` may be called at all of the addresses that its host has.

    Raises EndpointError REFUSED_ADDRESS, in the same words for every reason.
    """
    host, port = host_of(url), port_of(url)
    if found and (allowed.names(host, port) or allowed.holds(found)):
        return
    if url.scheme == "https" and port in PORTS and found and all(map(is_public, found)):
        return
    _refuse(
        f"this site may not connect to {host}, or no such host exists; use a public https "
        "address, or ask the operator to add the host to PTXBOARD_ENDPOINT_HOSTS"
    )


def is_public(address: Address) -> bool:
    """A unicast address that anyone on the internet may be reached at."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _REFUSED)


def _refuse(message: str) -> NoReturn:
    raise EndpointError(ErrorKind.REFUSED_ADDRESS, message)
