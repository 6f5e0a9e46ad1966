"""The page's server: headers, caching, encodings, ports, and nothing outside its folder."""

import importlib
import socket
import struct
import sys
import threading
from contextlib import ExitStack, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mlcweb import server as server_module
from mlcweb.server import ISOLATION_HEADERS, MAX_CONNECTIONS, PageServer, built_page


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "dist"
    (root / "assets").mkdir(parents=True)
    (root / "index.html").write_text("<title>page</title>")
    (root / "assets" / "index-B3xk9_2Q.js").write_text("export {}")
    (root / "pyodide.asm.wasm").write_bytes(b"\0asm")
    (root / "pyodide.asm.wasm.gz").write_bytes(b"compressed")
    (root / "mlcweb-0.1.0-py3-none-any.whl").write_bytes(b"PK")
    (tmp_path / "secret.txt").write_text("outside")
    return root


@pytest.fixture
def server(site: Path):
    with PageServer(site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_serves_the_page_isolated(server):
    with urlopen(server.url) as response:
        assert response.read() == b"<title>page</title>"
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert {n: response.headers[n] for n in ISOLATION_HEADERS} == ISOLATION_HEADERS


def test_leaves_isolation_out_when_asked(site):
    with PageServer(site, isolated=False) as server:
        assert not ISOLATION_HEADERS.keys() & server.answer("/").headers.keys()


@pytest.mark.parametrize(
    ("path", "mime"),
    [
        ("pyodide.asm.wasm", "application/wasm"),
        ("mlcweb-0.1.0-py3-none-any.whl", "application/zip"),
        ("assets/index-B3xk9_2Q.js", "text/javascript; charset=utf-8"),
    ],
)
def test_tells_the_type(server, path, mime):
    with urlopen(Request(server.url + path, method="HEAD")) as response:
        assert response.headers["Content-Type"] == mime
        assert response.read() == b""


def test_sends_what_was_compressed_beforehand_to_whom_takes_it(server):
    request = Request(server.url + "pyodide.asm.wasm", headers={"Accept-Encoding": "gzip, br"})
    with urlopen(request) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert response.read() == b"compressed"
    with urlopen(server.url + "pyodide.asm.wasm") as response:
        assert response.headers["Content-Encoding"] is None
        assert response.read() == b"\0asm"


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip;q=0", None), ("br, GZIP ; q=0.5", "gzip"), ("x-gzip", None), ("gzip;q=0.0, br", None)],
)
def test_an_encoding_that_is_not_taken_is_not_sent(server, accepted, encoding):
    answer = server.answer("/pyodide.asm.wasm", {"Accept-Encoding": accepted})
    assert answer.headers.get("Content-Encoding") == encoding


@pytest.mark.parametrize("header", ["Content-Length", "transfer-encoding"])
def test_the_body_of_a_request_is_not_taken_for_another(server, header):
    connection = HTTPConnection(*server.server_address)
    smuggled = b"GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n"
    length = str(len(smuggled)) if header == "Content-Length" else "chunked"
    connection.request("GET", "/", smuggled, {header: length})
    with connection.getresponse() as response:
        assert response.read() == b"<title>page</title>"
        assert response.headers["Connection"] == "close"
    assert connection.sock is None


def test_only_this_machine_reaches_it(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_known_content_is_not_sent_again_until_it_changes(server, site):
    with urlopen(server.url) as response:
        assert response.headers["Cache-Control"] == "no-cache"
        tag = response.headers["ETag"]
    assert server.answer("/", {"If-None-Match": tag}).status == HTTPStatus.NOT_MODIFIED
    (site / "index.html").write_text("<title>new page</title>")
    assert server.answer("/", {"If-None-Match": tag}).status == HTTPStatus.OK


def test_files_named_by_their_content_never_expire(server):
    headers = server.answer("/assets/index-B3xk9_2Q.js").headers
    assert headers["Cache-Control"] == "max-age=31536000, immutable"


@pytest.mark.parametrize("path", ["/../secret.txt", "/%2e%2e/secret.txt", "/nothing", "/assets"])
def test_nothing_else_is_there(server, path):
    answer = server.answer(path)
    assert answer.status == HTTPStatus.NOT_FOUND
    assert answer.body is None
    with pytest.raises(HTTPError, match="404"):
        urlopen(server.url.rstrip("/") + path)


def test_takes_another_port_when_the_wished_one_is_busy(site):
    with PageServer(site) as first, PageServer(site, port=first.server_port) as second:
        assert second.server_port != first.server_port


def test_says_that_there_is_no_page(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no built page \(no index\.html\)"):
        PageServer(tmp_path)


def test_the_page_is_a_checkouts_or_else_a_packages(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "__file__", str(tmp_path / "mlcweb" / "server.py"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(FileNotFoundError, match="page is not installed"):
        built_page()
    for folder in (tmp_path / "mlcweb_page", tmp_path / "web" / "dist"):
        folder.mkdir(parents=True)
        (folder / "index.html").write_text("page")
        importlib.invalidate_caches()
        assert built_page() == folder


@pytest.mark.parametrize("path", ["/%00", "/a%00b", "/" + "long" * 2000, "//[", "/loop", "/%ff"])
def test_no_path_is_too_strange(server, site, path):
    (site / "loop").symlink_to("loop")
    assert server.answer(path).status == HTTPStatus.NOT_FOUND
    with pytest.raises(HTTPError, match="404"):
        urlopen(server.url.rstrip("/") + path)


def test_no_link_leads_out(server, site):
    outside = site.parent / "secret.txt"
    (site / "link.txt").symlink_to(outside)
    (site / "folder").mkdir()
    (site / "folder" / "index.html").symlink_to(outside)
    (site / "page.js").write_text("plain")
    (site / "page.js.gz").symlink_to(outside)
    for path in ("/link.txt", "/folder/", "/folder"):
        assert server.answer(path).status == HTTPStatus.NOT_FOUND
    answer = server.answer("/page.js", {"Accept-Encoding": "gzip"})
    assert answer.body == site / "page.js"
    assert "Content-Encoding" not in answer.headers
    # Within the folder it may.
    (site / "inside.js").symlink_to(site / "page.js")
    assert server.answer("/inside.js").body == site / "page.js"


@pytest.mark.parametrize(
    ("wanted", "content", "where"),
    [
        ("bytes=1-2", b"as", "bytes 1-2/4"),
        ("bytes=2-", b"sm", "bytes 2-3/4"),
        ("bytes=-1", b"m", "bytes 3-3/4"),
        ("bytes=0-99", b"\0asm", "bytes 0-3/4"),
        ("bytes=-99", b"\0asm", "bytes 0-3/4"),
    ],
)
def test_a_part_of_a_file(server, wanted, content, where):
    request = Request(server.url + "pyodide.asm.wasm", headers={"Range": wanted})
    with urlopen(request) as response:
        assert (response.status, response.read()) == (206, content)
        assert response.headers["Content-Range"] == where
        assert response.headers["Content-Length"] == str(len(content))


@pytest.mark.parametrize("wanted", ["bytes=-", "bytes=0-1,2-3", "lines=1-2", "bytes=x-", ""])
def test_what_is_no_single_range_gets_the_whole_file(server, wanted):
    answer = server.answer("/pyodide.asm.wasm", {"Range": wanted})
    assert (answer.status, answer.part) == (HTTPStatus.OK, None)
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_a_range_beyond_the_file_and_one_of_another_version(server):
    for wanted in ("bytes=4-", "bytes=3-1", "bytes=-0"):
        answer = server.answer("/pyodide.asm.wasm", {"Range": wanted})
        assert answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        assert answer.headers["Content-Range"] == "bytes */4"
        assert answer.body is None
    given = {"Range": "bytes=1-2", "If-Range": '"another"'}
    assert server.answer("/pyodide.asm.wasm", given).status == HTTPStatus.OK
    given["If-Range"] = server.answer("/pyodide.asm.wasm").headers["ETag"]
    assert server.answer("/pyodide.asm.wasm", given).status == HTTPStatus.PARTIAL_CONTENT


def test_names_of_other_machines_get_nothing(server, site):
    for host in ("localhost", "127.0.0.1:8000", "LOCALHOST:1", "[::1]:80", "a.localhost"):
        assert server.answer("/", {"Host": host}).status == HTTPStatus.OK
    for host in ("evil.example", "evil.example:8000", "localhost.evil.example", ""):
        answer = server.answer("/", {"Host": host})
        assert (answer.status, answer.body) == (HTTPStatus.MISDIRECTED_REQUEST, None)
    request = Request(server.url, headers={"Host": "rebound.example"})
    with pytest.raises(HTTPError, match="421"):
        urlopen(request)
    with PageServer(site, names=["Proxy.example"]) as behind:
        assert behind.answer("/", {"Host": "proxy.example"}).status == HTTPStatus.OK


def test_other_servers_do_not_learn_where_the_page_is(server):
    for path in ("/", "/nothing"):
        assert server.answer(path).headers["Referrer-Policy"] == "no-referrer"


class Clock:
    """Tells the seconds that the test says."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


HEAD = b"GET /index.html HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE = 60
LARGE = 64_000_000
"""Bytes of a file that no socket holds."""


@pytest.fixture
def slow(site: Path, capfd: pytest.CaptureFixture[str]):
    """A server and its clock. No client of it leaves a thread or a line in the terminal behind."""
    clock = Clock()
    before = set(threading.enumerate())
    with PageServer(site, patience=PATIENCE, clock=clock) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server, clock
        server.shutdown()
    for left in set(threading.enumerate()) - before:
        left.join(60)
        assert not left.is_alive()
    assert capfd.readouterr() == ("", "")


def give_up(server: PageServer, clock: Clock, until: int = 0) -> None:
    """Lets time pass until so many connections are left."""
    while server.connections > until:
        clock.seconds += PATIENCE
        threading.Event().wait(0.001)  # lets the server work


def rest_of(connection: socket.socket) -> bytes:
    """What the server sends until it ends the connection."""
    received = bytearray()
    try:
        while part := connection.recv(1_000_000):
            received += part
    except ConnectionResetError:
        pass
    return bytes(received)


def wait_for(server: PageServer, connections: int) -> None:
    while server.connections != connections:
        threading.Event().wait(0.001)


def test_who_sends_a_request_byte_by_byte_is_given_up(slow):
    server, clock = slow
    with socket.create_connection(server.server_address) as client:
        wait_for(server, 1)
        client.sendall(HEAD + b"Name: ")
        while server.connections:
            with suppress(ConnectionError):
                client.sendall(b"x")
            # Each byte arrives in time, but not the whole.
            clock.seconds += PATIENCE / 4
            threading.Event().wait(0.001)
        assert rest_of(client) == b""
    with urlopen(server.url) as response:
        assert response.read() == b"<title>page</title>"


def test_who_takes_no_answer_is_given_up(slow, site):
    with (site / "large.bin").open("wb") as file:
        file.truncate(LARGE)
    server, clock = slow
    with socket.create_connection(server.server_address) as client:
        client.sendall(HEAD.replace(b"index.html", b"large.bin") + b"\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        with urlopen(server.url) as response:
            assert response.read() == b"<title>page</title>"
        give_up(server, clock)
        assert len(rest_of(client)) < LARGE


def test_who_takes_a_large_file_slowly_gets_it(slow, site):
    with (site / "large.bin").open("wb") as file:
        file.truncate(LARGE)
    server, clock = slow
    with urlopen(server.url + "large.bin") as response:
        size = 0
        while part := response.read(4_000_000):
            size += len(part)
            clock.seconds += PATIENCE / 20
            server.service_actions()
    assert size == LARGE
    assert clock.seconds > PATIENCE / 2


def test_idle_connections_keep_nobody_out_and_end(slow):
    server, clock = slow
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS + 44):
            stack.enter_context(socket.create_connection(server.server_address))
        wait_for(server, MAX_CONNECTIONS)
        with urlopen(server.url) as response:
            assert response.read() == b"<title>page</title>"
        assert server.connections <= MAX_CONNECTIONS
        give_up(server, clock)


def test_a_connection_that_is_used_goes_on(slow):
    server, clock = slow
    connection = HTTPConnection(*server.server_address)
    for _ in range(3):
        connection.request("GET", "/")
        with connection.getresponse() as response:
            assert response.read() == b"<title>page</title>"
        clock.seconds += PATIENCE / 2
        server.service_actions()
    assert connection.sock is not None
    connection.close()


def test_who_goes_away_within_a_file_is_no_error(slow, site):
    with (site / "large.bin").open("wb") as file:
        file.truncate(LARGE)
    server, _ = slow
    for linger in (0, 1):
        with socket.create_connection(server.server_address) as client:
            # Without lingering the connection is reset, with it it is closed.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1 - linger, 0))
            client.sendall(HEAD.replace(b"index.html", b"large.bin") + b"\r\n")
            assert client.recv(15) == b"HTTP/1.1 200 OK"
        wait_for(server, 0)


def test_a_file_that_becomes_shorter_ends_its_connection(slow, site, monkeypatch):
    server, _ = slow
    whole = server.answer("/index.html")
    short = whole._replace(headers={**whole.headers, "Content-Length": "1000"})
    monkeypatch.setattr(server, "answer", lambda *request: short)
    with socket.create_connection(server.server_address) as client:
        client.sendall(HEAD + b"\r\n")
        assert rest_of(client).endswith(b"\r\n\r\n<title>page</title>")


def test_a_file_that_cannot_be_read_is_not_there(server, site, monkeypatch):
    def refuse(*arguments: object) -> str:
        raise PermissionError

    monkeypatch.setattr(server_module, "_digest", refuse)
    assert server.answer("/index.html").status == HTTPStatus.NOT_FOUND
