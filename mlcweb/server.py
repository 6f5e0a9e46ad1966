"""A small web server for the built page: static files, with the headers they need.

The page works on any file host. What this server adds is cross-origin isolation, which gives
the page shared memory and a fine clock, and caching that never serves a stale file.

It answers only who asks for this machine by name: a page of another site whose name leads here
(DNS rebinding) gets nothing.

It serves each connection in a thread. A client that makes no progress for a minute is given up, and
where there are too many connections the one that has waited longest, so that none keeps others out.
"""

import hashlib
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.message import Message
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from mlcweb.page_headers import COMMON_HEADERS, ISOLATION_HEADERS, headers_of

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")

ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Content encodings, best first, and the suffix of a file compressed beforehand."""

PATIENCE_S = 60.0
"""Seconds in which a client sends a whole head of a request, or takes the next part of a file."""

MAX_CONNECTIONS = 256
"""Each has a thread and a file descriptor. Browsers open six for a page."""

_CHUNK = 65_536
"""Bytes of a part of a file, which a client has to take in time."""

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})$")
"""One range; several at once are not served, which is allowed."""


def built_page() -> Path:
    """The folder of the built page: a checkout's, or else that of the package `mlcweb_page`.

    Raises:
        FileNotFoundError: there is neither.
    """
    checkout = Path(__file__).parents[1] / "web" / "dist"
    if (checkout / "index.html").is_file():
        return checkout
    package = find_spec("mlcweb_page")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("The page is not installed")
    return Path(package.submodule_search_locations[0])


Headers: TypeAlias = Mapping[str, str] | Message
"""Of a request."""


class Answer(NamedTuple):
    """What to send for a request: a status, headers, and a file, or a part of it, if any."""

    status: HTTPStatus
    headers: dict[str, str]
    body: Path | None = None
    part: range | None = None


class PageServer(ThreadingHTTPServer):
    """Serves the files below `root` on the loopback interface.

    Args:
        root: folder of the built page.
        port: the port wished for; if it is taken, the next free one of the following twenty,
            or any. 0 takes any at once.
        isolated: send the headers of cross-origin isolation.
        names: names besides this machine's own under which it may be asked, of a proxy before it.
        patience: seconds after which a client is given up that sends no whole head of a request, or
            takes no part of a file.
        clock: tells the time, in seconds.

    Raises:
        FileNotFoundError: `root` holds no ``index.html``.
    """

    daemon_threads = True
    # A browser opens many connections at once; a refused one costs it a second.
    request_queue_size = 128
    # Otherwise a port that another server listens on counts as free on some systems.
    allow_reuse_port = False

    def __init__(
        self,
        root: Path,
        *,
        port: int = 0,
        isolated: bool = True,
        names: Sequence[str] = (),
        patience: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ):
        if not (root / "index.html").is_file():
            raise FileNotFoundError(f"{root} holds no built page (no index.html)")
        self.root = root.resolve()
        self.isolated = isolated
        self.names = {*LOCAL_NAMES, *(name.lower() for name in names)}
        self._patience = patience
        self._clock = clock
        self._deadlines: dict[socket.socket, float] = {}
        self._lock = Lock()
        candidates = [0] if port == 0 else [*range(port, port + 21), 0]
        for candidate in candidates:
            try:
                super().__init__(("127.0.0.1", candidate), PageHandler)
                return
            except OSError:
                if candidate == 0:
                    raise

    @property
    def url(self) -> str:
        """The address to open, with a final slash."""
        return f"http://localhost:{self.server_port}/"

    @property
    def connections(self) -> int:
        """How many are open and not given up."""
        return len(self._deadlines)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._deadlines) >= MAX_CONNECTIONS:
                self._give_up(min(self._deadlines, key=self._deadlines.__getitem__))
        self.renew(request)
        super().process_request(request, client_address)

    def renew(self, connection: socket.socket) -> None:
        """The client has made progress: it has its whole time again."""
        with self._lock:
            self._deadlines[connection] = self._clock() + self._patience

    def service_actions(self) -> None:
        """Give up clients that are too slow; the loop of the server calls this twice a second."""
        now = self._clock()
        with self._lock:
            for connection in [each for each, end in self._deadlines.items() if end <= now]:
                self._give_up(connection)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for connection in list(self._deadlines):
                self._give_up(connection)

    def _give_up(self, connection: socket.socket) -> None:
        """Ends a connection, whose thread notices that and ends, too. Under the lock."""
        del self._deadlines[connection]
        with suppress(OSError):  # the client was faster
            connection.shutdown(socket.SHUT_RDWR)

    def answer(self, target: str, given: Headers | None = None) -> Answer:
        """The answer to a request for the path `target`, as sent, with the headers `given`."""
        given = given or {}
        common = {**COMMON_HEADERS, **(ISOLATION_HEADERS if self.isolated else {})}
        if not self.is_meant(given.get("Host", "localhost")):
            return Answer(HTTPStatus.MISDIRECTED_REQUEST, {**common, "Content-Length": "0"})
        path = self.file(target)
        tag = _tag(path) if path is not None else None
        if path is None or tag is None:
            return Answer(HTTPStatus.NOT_FOUND, {**common, "Content-Length": "0"})
        headers = {
            **common,
            **headers_of(path.relative_to(self.root).as_posix()),
            "ETag": tag,
            "Vary": "Accept-Encoding",
            "Accept-Ranges": "bytes",
        }
        if tag in given.get("If-None-Match", ""):
            return Answer(HTTPStatus.NOT_MODIFIED, headers)
        body = path
        for encoding, suffix in ENCODINGS.items():
            compressed = self._inside(path.with_name(path.name + suffix))
            if compressed is not None and _takes(given.get("Accept-Encoding", ""), encoding):
                headers["Content-Encoding"] = encoding
                body = compressed
                break
        if given.get("If-Range", tag) != tag:
            given = {}
        return _part_of(body, given.get("Range", ""), headers)

    def is_meant(self, host: str) -> bool:
        """Whether a request with this ``Host`` is for this server."""
        name = re.sub(r":\d*$", "", host.strip().lower())
        return name in self.names or name.endswith(".localhost")

    def file(self, target: str) -> Path | None:
        """The file that a path of a request names; None where there is none below the root."""
        try:
            name = unquote(urlsplit(target).path).lstrip("/")
        except ValueError:
            return None
        path = self._inside(self.root / name)
        if path is not None:
            return path
        return self._inside(self.root / name / "index.html")

    def _inside(self, path: Path) -> Path | None:
        """The file behind all links of `path`, if it lies below the root."""
        try:
            path = path.resolve()
            return path if path.is_relative_to(self.root) and path.is_file() else None
        except (
            OSError,
            ValueError,
            RuntimeError,
        ):  # names too long, zeros in them, links in circles
            return None


def _takes(accepted: str, encoding: str) -> bool:
    """Whether an ``Accept-Encoding`` names `encoding`, with another weight than 0."""
    named = re.search(rf"(?:^|,)\s*{encoding}\s*(?:;\s*q=([\d.]+)\s*)?(?:,|$)", accepted.lower())
    return named is not None and not re.fullmatch(r"0(\.0*)?", named[1] or "1")


def _part_of(body: Path, wanted: str, headers: dict[str, str]) -> Answer:
    """The answer with a file, or with the range of it that is wanted."""
    size = body.stat().st_size
    asked = _RANGE.match(wanted)
    if asked is None or asked.groups() == ("", ""):
        return Answer(HTTPStatus.OK, {**headers, "Content-Length": str(size)}, body)
    first, last = asked.groups()
    if first:
        part = range(int(first), min(int(last) + 1, size) if last else size)
    else:
        part = range(max(size - int(last), 0), size)
    if not part:
        headers = {**headers, "Content-Range": f"bytes */{size}", "Content-Length": "0"}
        return Answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers)
    headers |= {
        "Content-Range": f"bytes {part.start}-{part.stop - 1}/{size}",
        "Content-Length": str(len(part)),
    }
    return Answer(HTTPStatus.PARTIAL_CONTENT, headers, body, part)


class PageHandler(BaseHTTPRequestHandler):
    """One connection of a `PageServer`."""

    protocol_version = "HTTP/1.1"

    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        answer = self._send_head()
        if answer.body is None:
            return
        part = answer.part or range(int(answer.headers["Content-Length"]))
        left = len(part)
        with answer.body.open("rb") as file:
            file.seek(part.start)
            while left and (data := file.read(min(_CHUNK, left))):
                self.server.renew(self.connection)
                self.wfile.write(data)
                left -= len(data)
        if left:  # somebody cut the file meanwhile, and the client would wait for the rest
            self.close_connection = True

    def do_HEAD(self) -> None:
        self._send_head()

    def _send_head(self) -> Answer:
        answer = self.server.answer(self.path, self.headers)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            # A body that nobody reads would be taken for the next request.
            self.send_header("Connection", "close")
        self.end_headers()
        return answer

    def handle(self) -> None:
        # A reader who closes the tab, or goes on before a file is through, is no error.
        with suppress(ConnectionError):
            super().handle()

    def handle_one_request(self) -> None:
        self.server.renew(self.connection)
        super().handle_one_request()

    def log_message(self, format: str, *args: object) -> None:
        """Keeps quiet: the terminal is for the address and for errors."""


def _tag(path: Path) -> str | None:
    """The entity tag of a file; None where it cannot be read."""
    try:
        stat = path.stat()
        return f'"{_digest(path, stat.st_mtime_ns, stat.st_size)}"'
    except OSError:
        return None


@lru_cache(maxsize=1024)
def _digest(path: Path, modified_ns: int, size: int) -> str:
    """A short hash of a file's content, computed anew when its time or size changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:20]
