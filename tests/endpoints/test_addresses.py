"""Which addresses the site connects to: field case O-36, without a network."""

import ipaddress

import httpx2
import pytest

from leaderboard.endpoints.addresses import Allowed, check_text, is_public, judge
from leaderboard.endpoints.errors import EndpointError, ErrorKind

NOBODY = Allowed()
PUBLIC = ipaddress.ip_address("93.184.216.34")


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0",
        "10.0.0.5",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.8.8.8",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:169.254.169.254",
        "::ffff:8.8.8.8",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:a9fe:a9fe::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_public_is_known(text):
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["93.184.216.34", "8.8.8.8", "2606:4700::6810:85e5"])
def test_a_public_address_is_known(text):
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://user:pw@example.org/v1", "holds a user name"),
        ("https://@example.org/v1", "holds a user name"),
        ("https://example.org/v1?key=x", "a query or a fragment"),
        ("https://example.org/v1#x", "a query or a fragment"),
        ("file:///etc/hosts", "is not a URL such as"),
        ("gopher://example.org/", "is not a URL such as"),
        ("ftp://example.org/", "is not a URL such as"),
        ("//example.org/v1", "is not a URL such as"),
        ("https:///v1", "is not a URL such as"),
        ("example.org", "is not a URL such as"),
        ("https://exa mple.org:x/", "is not a URL such as"),
        ("https://0177.0.0.1/v1", "is not a URL such as"),
        ("", "is not a URL such as"),
        ("http://example.org/v1", "use https"),
        ("http://127.0.0.1:6379", "use https"),
        ("https://127.0.0.1/v1", "may not connect to 127.0.0.1"),
        ("https://[::ffff:a9fe:a9fe]/v1", "may not connect to ::ffff:a9fe:a9fe"),
        ("https://example.org:22/v1", "port 22 is only for hosts that the operator allows"),
    ],
)
def test_text_that_no_endpoint_has_is_refused_without_a_look_up(text, words):
    with pytest.raises(EndpointError) as caught:
        check_text(text, NOBODY)
    assert caught.value.kind is ErrorKind.REFUSED_ADDRESS
    assert words in caught.value.message


@pytest.mark.parametrize(
    "text", ["https://example.org/v1", "https://example.org:8443", "https://x"]
)
def test_a_plain_https_address_is_looked_at_further(text):
    check_text(text, NOBODY)


@pytest.mark.parametrize(
    "found",
    [
        [],
        [ipaddress.ip_address("10.0.0.5")],
        [PUBLIC, ipaddress.ip_address("10.0.0.5")],
        [PUBLIC, ipaddress.ip_address("::1")],
    ],
)
def test_every_refusal_of_a_name_reads_alike(found):
    with pytest.raises(EndpointError) as caught:
        judge(httpx2.URL("https://example.org/v1"), found, NOBODY)
    assert caught.value.kind is ErrorKind.REFUSED_ADDRESS
    assert not caught.value.is_retryable
    assert caught.value.message == (
        "this site may not connect to example.org, or no such host exists; use a public https "
        "address, or ask the operator to add the host to PTXBOARD_ENDPOINT_HOSTS"
    )


def test_a_public_name_passes():
    judge(httpx2.URL("https://example.org/v1"), [PUBLIC], NOBODY)


@pytest.mark.parametrize(
    ("entry", "url", "address", "passes"),
    [
        ("vllm.lab", "http://vllm.lab:8000/v1", "10.0.0.5", True),
        ("VLLM.lab", "http://vllm.lab/v1", "10.0.0.5", True),
        ("vllm.lab:8000", "http://vllm.lab:8000/v1", "10.0.0.5", True),
        ("vllm.lab:80", "http://vllm.lab/v1", "10.0.0.5", True),
        ("vllm.lab:443", "https://vllm.lab/v1", "10.0.0.5", True),
        ("vllm.lab:8000", "http://vllm.lab:8001/v1", "10.0.0.5", False),
        ("vllm.lab", "http://evil.vllm.lab/v1", "10.0.0.5", False),
        ("vllm.lab", "http://vllm.lab.evil.org/v1", "10.0.0.5", False),
        ("bücher.example", "http://bücher.example/v1", "10.0.0.5", True),
        ("10.0.0.0/24", "http://anything.lab:8000/v1", "10.0.0.5", True),
        ("10.0.0.5", "http://10.0.0.5:8000/v1", "10.0.0.5", True),
        ("10.0.0.0/24", "http://anything.lab:8000/v1", "10.0.1.5", False),
        ("10.0.0.0/24", "http://example.org/v1", "93.184.216.34", False),
        ("10.0.0.0/24", "https://example.org/v1", "93.184.216.34", True),
        ("[::1]:8000", "http://[::1]:8000/v1", "::1", True),
        ("::1", "http://[::1]:8000/v1", "::1", True),
    ],
)
def test_the_operator_opens_exactly_what_is_listed(entry, url, address, passes):
    allowed = Allowed.read([entry])
    found = [ipaddress.ip_address(address)]
    if passes:
        check_text(url, allowed)
        judge(httpx2.URL(url), found, allowed)
    else:
        with pytest.raises(EndpointError):
            judge(httpx2.URL(url), found, allowed)


@pytest.mark.parametrize("entry", ["http://vllm.lab", "vllm.lab/v1", "a b", "u@vllm.lab", "", "*"])
def test_an_entry_that_is_no_host_is_named(entry):
    with pytest.raises(ValueError, match="PTXBOARD_ENDPOINT_HOSTS holds"):
        Allowed.read([entry])
