"""The guarded connection, on real sockets: where it goes, and that nothing else opens one."""

import ast
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from leaderboard.endpoints import egress
from leaderboard.endpoints.addresses import Allowed
from leaderboard.endpoints.errors import EndpointError, ErrorKind
from tests.endpoints.conftest import LIMITS

ROOT = Path(__file__).parents[2]

# Modules that open connections, and who may import them besides egress.py, with the reason.
CONNECTING = {
    "aiohttp",
    "anthropic",
    "asyncio",
    "ftplib",
    "http.client",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "openai",
    "requests",
    "smtplib",
    "socket",
    "urllib.request",
    "urllib3",
}
MAY_IMPORT = {
    "leaderboard/endpoints/addresses.py": {"httpx2"},  # reads URLs
    "leaderboard/endpoints/egress.py": {"httpcore2", "httpx2", "socket"},
    "leaderboard/endpoints/official.py": {"anthropic", "httpx2", "openai"},  # over egress's client
    # the demo waits for the very site that it has started
    "leaderboard/management/commands/demo.py": {"urllib.request"},
}


def looked_up(*addresses: str) -> Callable[..., list[object]]:
    """A resolver to whom every name has these addresses."""

    def answer(host: str, port: int, *rest: object, **more: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    return answer


def get(url: str, allowed: Allowed | None = None) -> httpx2.Response:
    client = egress.http_client(
        limits=LIMITS,
        allowed=allowed or Allowed(),
        outgoing=lambda request: httpx2.Headers({"Host": request.headers["Host"]}),
    )
    with client:
        return client.get(url)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket of this machine that must see no connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)
        yield server
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "127.1",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ],
)
def test_no_spelling_of_this_machine_is_connected_to(listener, monkeypatch, host):
    port = listener.getsockname()[1]
    monkeypatch.setattr("leaderboard.endpoints.addresses.PORTS", frozenset({port}))
    with pytest.raises(EndpointError, match="may not connect to") as caught:
        get(f"https://{host}:{port}/v1")
    assert caught.value.kind is ErrorKind.REFUSED_ADDRESS


@pytest.mark.parametrize("host", ["169.254.169.254", "2852039166", "[::ffff:a9fe:a9fe]"])
def test_no_spelling_of_the_metadata_address_is_connected_to(host):
    start = time.monotonic()
    with pytest.raises(EndpointError, match="may not connect to"):
        get(f"https://{host}/v1")
    assert time.monotonic() - start < 1


def test_a_refusal_does_not_depend_on_whether_something_listens(listener, monkeypatch):
    port = listener.getsockname()[1]
    monkeypatch.setattr("leaderboard.endpoints.addresses.PORTS", frozenset({port, 1}))
    words = []
    for tried in (port, 1):
        with pytest.raises(EndpointError) as caught:
            get(f"https://127.0.0.1:{tried}/")
        words.append((caught.value.kind, caught.value.message))
    assert words[0] == words[1]


def test_a_name_that_is_public_first_and_private_then_is_looked_up_once(listener, monkeypatch):
    """Rebinding: the second answer is never asked for, so the connection goes to the first."""
    asked: list[str] = []
    reached: list[tuple[str, int]] = []

    def answers(host: str, port: int, **more: object) -> list[object]:
        asked.append(host)
        ip = "93.184.216.34" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    def connect(self: object, host: str, port: int, *rest: object, **more: object) -> None:
        reached.append((host, port))
        raise egress.httpcore2.ConnectError("test")

    monkeypatch.setattr(egress.socket, "getaddrinfo", answers)
    monkeypatch.setattr(egress.httpcore2.SyncBackend, "connect_tcp", connect)
    with pytest.raises(EndpointError) as caught:
        get("https://rebinds.example/v1")
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert asked == ["rebinds.example"]
    assert reached == [("93.184.216.34", 443)]


def test_a_name_with_one_private_address_is_refused(monkeypatch):
    both = looked_up("93.184.216.34", "127.0.0.1")
    monkeypatch.setattr(egress.socket, "getaddrinfo", both)
    with pytest.raises(EndpointError, match="may not connect to both"):
        get("https://both.example/v1")


def test_a_look_up_that_hangs_is_left_after_its_time(monkeypatch):
    monkeypatch.setattr(egress, "RESOLVE_SECONDS", 0.2)
    monkeypatch.setattr(egress.socket, "getaddrinfo", lambda *a, **k: time.sleep(1) or [])
    start = time.monotonic()
    with pytest.raises(EndpointError) as caught:
        get("https://slow.example/v1")
    assert (caught.value.kind, caught.value.is_retryable) == (ErrorKind.UNREACHABLE, True)
    assert time.monotonic() - start < 0.9


def test_an_allowed_host_that_does_not_listen_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(EndpointError) as caught:
        get(f"http://127.0.0.1:{port}/v1", Allowed.read(["127.0.0.1"]))
    assert (caught.value.kind, caught.value.is_retryable) == (ErrorKind.UNREACHABLE, True)
    assert "127.0.0.1" not in caught.value.message


def test_a_proxy_of_the_environment_is_not_used(listener, monkeypatch):
    proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    with pytest.raises(EndpointError, match=r"may not connect to 10\.0\.0\.5"):
        get("https://10.0.0.5/v1")


class TlsServer:
    """One TLS server for `name`; remembers SNI and Host of each connection."""

    def __init__(self, folder: Path, name: str) -> None:
        self.names: list[str | None] = []
        self.hosts: list[bytes] = []
        key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = folder / "certificate.pem"
        private = folder / "key.pem"
        self.certificate.write_bytes(_certificate(key, name))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, private)
        self._context.sni_callback = lambda sock, seen, context: self.names.append(seen)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
                with self._context.wrap_socket(plain, server_side=True) as connection:
                    lines = connection.recv(4096).split(b"\r\n")
                    self.hosts += [line for line in lines if line.lower().startswith(b"host:")]
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            except ssl.SSLError:
                continue
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()


def _certificate(key: ec.EllipticCurvePrivateKey, name: str) -> bytes:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TlsServer]:
    """A TLS server that every name leads to, with a certificate that this process trusts."""
    server = TlsServer(tmp_path, "models.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    monkeypatch.setattr(egress.socket, "getaddrinfo", looked_up("127.0.0.1"))
    yield server
    server.close()


def test_host_and_sni_keep_the_name_while_the_connection_goes_to_the_address(tls):
    allowed = Allowed.read(["127.0.0.1"])
    response = get(f"https://models.example:{tls.port}/v1", allowed)
    assert response.read() == b"ok"
    assert tls.names == ["models.example"]
    assert tls.hosts == [f"Host: models.example:{tls.port}".encode()]


def test_a_certificate_of_another_name_is_not_taken(tls):
    with pytest.raises(EndpointError, match="the certificate does not fit the name") as caught:
        get(f"https://other.example:{tls.port}/v1", Allowed.read(["127.0.0.1"]))
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert tls.hosts == []


def test_a_certificate_that_nobody_trusts_is_not_taken(tls, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(EndpointError, match="the certificate does not fit the name"):
        get(f"https://models.example:{tls.port}/v1", Allowed.read(["127.0.0.1"]))
    assert tls.hosts == []


def imports_of(path: Path) -> set[str]:
    """Names of CONNECTING that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        dotted = [f"{name}." for name in names]
        found |= {known for known in CONNECTING for name in dotted if name.startswith(f"{known}.")}
    return found


def test_no_other_module_of_the_site_opens_connections():
    paths = [path for folder in ("leaderboard", "webapp") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): imports_of(path) for path in paths}
    assert {name: names for name, names in found.items() if names} == MAY_IMPORT


@pytest.mark.parametrize(
    "line",
    [
        "import socket",
        "from urllib import request",
        "import urllib.request as r",
        "from openai import x",
    ],
)
def test_the_walk_sees_an_import_in_any_form(tmp_path, line):
    path = tmp_path / "module.py"
    path.write_text(f"def late():\n    {line}\n")
    assert len(imports_of(path)) == 1


def test_a_resolved_address_is_an_address():
    assert egress.resolve("127.0.0.1", 443) == [ipaddress.ip_address("127.0.0.1")]
    assert egress.resolve("no-such-host.invalid", 443) == []
    assert egress.resolve("a" * 300, 443) == []
