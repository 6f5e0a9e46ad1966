"""The page's server: headers, caching, encodings, ports, and nothing outside its folder."""

import importlib
import sys
import threading
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mlcweb import server as server_module
from mlcweb.server import ISOLATION_HEADERS, PageServer, built_page


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
