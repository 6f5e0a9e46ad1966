"""A web page of somebody else's, on another origin than the playground, for tests of embedding."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ISOLATED = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


class HostServer(ThreadingHTTPServer):
    """Serves texts at addresses of its own origin.

    A browser takes 127.0.0.1 and localhost, where the playground is, for two sites.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HostHandler)
        self.pages: dict[str, tuple[str, dict[str, str]]] = {}

    def put(
        self,
        name: str,
        text: str,
        headers: dict[str, str] | None = None,
        *,
        other_site: bool = False,
    ) -> str:
        """Serve `text` under `name`; returns its address, on the playground's site or another."""
        self.pages[f"/{name}"] = (text, headers or {})
        host = "127.0.0.1" if other_site else "localhost"
        return f"http://{host}:{self.server_port}/{name}"


class HostHandler(BaseHTTPRequestHandler):
    """One request to a `HostServer`."""

    def do_GET(self) -> None:
        assert isinstance(self.server, HostServer)
        found = self.server.pages.get(self.path)
        text, headers = found or ("", {})
        body = text.encode()
        self.send_response(200 if found else 404)
        kind = "text/html" if self.path.endswith(".html") else "text/plain"
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keeps quiet."""
