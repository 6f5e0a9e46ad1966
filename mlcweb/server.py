"""A small web server for the built page: static files, with the headers they need.

The page works on any file host. What this server adds is cross-origin isolation, which gives
the page shared memory and a fine clock, and caching that never serves a stale file.
"""

import hashlib
import re
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfileobj
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

ISOLATION_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
    # Isolates the page also inside a frame of another site, where a browser knows it.
    "Document-Isolation-Policy": "isolate-and-require-corp",
}

MIME_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".py": "text/x-python; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".whl": "application/zip",
    ".woff2": "font/woff2",
    ".zip": "application/zip",
}

ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Content encodings, best first, and the suffix of a file compressed beforehand."""

_NAMED_BY_CONTENT = re.compile(r"[-.][A-Za-z0-9_-]{8,}\.\w+$")
"""The bundler's file names: a hash of the content before the suffix."""


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


class Answer(NamedTuple):
    """What to send for a request: a status, headers, and a file as the body, if any."""

    status: HTTPStatus
    headers: dict[str, str]
    body: Path | None = None


class PageServer(ThreadingHTTPServer):
    """Serves the files below `root` on the loopback interface.

    Args:
        root: folder of the built page.
        port: the port wished for; if it is taken, the next free one of the following twenty,
            or any. 0 takes any at once.
        isolated: send the headers of cross-origin isolation.

    Raises:
        FileNotFoundError: `root` holds no ``index.html``.
    """

    daemon_threads = True
    # Otherwise a port that another server listens on counts as free on some systems.
    allow_reuse_port = False

    def __init__(self, root: Path, *, port: int = 0, isolated: bool = True):
        if not (root / "index.html").is_file():
            raise FileNotFoundError(f"{root} holds no built page (no index.html)")
        self.root = root.resolve()
        self.isolated = isolated
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

    def answer(self, target: str, accepted: str = "", known: str = "") -> Answer:
        """The answer to a request.

        Args:
            target: the request's path, as sent.
            accepted: content encodings that the client takes (``Accept-Encoding``).
            known: the version that the client has (``If-None-Match``).
        """
        common = ISOLATION_HEADERS if self.isolated else {}
        path = (self.root / unquote(urlsplit(target).path).lstrip("/")).resolve()
        if path.is_dir():
            path /= "index.html"
        if not path.is_relative_to(self.root) or not path.is_file():
            return Answer(HTTPStatus.NOT_FOUND, {**common, "Content-Length": "0"})
        stat = path.stat()
        tag = f'"{_digest(path, stat.st_mtime_ns, stat.st_size)}"'
        immutable = path.parent.name == "assets" and _NAMED_BY_CONTENT.search(path.name)
        headers = {
            **common,
            "Content-Type": MIME_TYPES.get(path.suffix, "application/octet-stream"),
            "Cache-Control": "max-age=31536000, immutable" if immutable else "no-cache",
            "ETag": tag,
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if tag in known:
            return Answer(HTTPStatus.NOT_MODIFIED, headers)
        body = path
        for encoding, suffix in ENCODINGS.items():
            compressed = path.with_name(path.name + suffix)
            if encoding in accepted and compressed.is_file():
                headers["Content-Encoding"] = encoding
                body = compressed
                break
        headers["Content-Length"] = str(body.stat().st_size)
        return Answer(HTTPStatus.OK, headers, body)


class PageHandler(BaseHTTPRequestHandler):
    """One connection of a `PageServer`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self._send_head()
        if body is not None:
            with body.open("rb") as file:
                copyfileobj(file, self.wfile)

    def do_HEAD(self) -> None:
        self._send_head()

    def _send_head(self) -> Path | None:
        assert isinstance(self.server, PageServer)
        status, headers, body = self.server.answer(
            self.path,
            self.headers.get("Accept-Encoding", ""),
            self.headers.get("If-None-Match", ""),
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        return body

    def handle(self) -> None:
        # A reader who closes the tab, or goes on before a file is through, is no error.
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Keeps quiet: the terminal is for the address and for errors."""


@lru_cache(maxsize=1024)
def _digest(path: Path, modified_ns: int, size: int) -> str:
    """A short hash of a file's content, computed anew when its time or size changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:20]
