"""What a host sends with the files of the page: the one source of these headers.

`mlcweb serve` sends them; the files in `web/hosts` say them to other servers, and are written by

    python -m mlcweb.page_headers web/hosts
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

ISOLATION_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
    # Isolates the page also inside a frame of another site, where a browser knows it.
    "Document-Isolation-Policy": "isolate-and-require-corp",
}

COMMON_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # Where the page lies concerns no other server.
    "Referrer-Policy": "no-referrer",
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

FRESH = {"Cache-Control": "no-cache"}
IMMUTABLE = {"Cache-Control": "max-age=31536000, immutable"}
"""Of `assets/`: the names of its files change with their content."""

UNFRAMED = {"Content-Security-Policy": "frame-ancestors 'self'"}
"""Of the playground itself: another site must not lay it under its own buttons. `embed.html` is for
frames. (The rest of the policy is in the documents; only this part cannot be.)"""


def headers_of(path: str) -> dict[str, str]:
    """The headers of a file, by its path below the page's folder, beside those of all files."""
    caching = IMMUTABLE if path.startswith("assets/") else FRESH
    framing = UNFRAMED if path == "index.html" else {}
    kind = MIME_TYPES.get(PurePosixPath(path).suffix, "application/octet-stream")
    return {"Content-Type": kind, **caching, **framing}


EVERYWHERE = {**ISOLATION_HEADERS, **COMMON_HEADERS}


def static_host() -> str:
    """`_headers`, as Netlify and Cloudflare Pages read it from the root of a site.

    Both join the values of rules that overlap, so no two rules have a header in common. Of files
    outside of `assets/` both have caches ask again without being told.
    """
    rules = {"/*": EVERYWHERE, "/assets/*": IMMUTABLE, "/": UNFRAMED, "/index.html": UNFRAMED}
    rules |= {f"/*{suffix}": {"Content-Type": MIME_TYPES[suffix]} for suffix in SELDOM_KNOWN}
    return _comment("#", "At the root of the site, beside index.html") + "".join(
        f"{path}\n" + _lines("  {}: {}", headers) for path, headers in rules.items()
    )


SELDOM_KNOWN = (".mjs", ".wasm", ".whl")
"""Suffixes that servers may not know the type of."""


def _types() -> dict[str, list[str]]:
    """The types that servers may not know, and their suffixes without the dot."""
    types: dict[str, list[str]] = {}
    for suffix in SELDOM_KNOWN:
        types.setdefault(MIME_TYPES[suffix].partition(";")[0], []).append(suffix[1:])
    return types


def nginx() -> str:
    """Inside of `server { … }`; a location inherits no `add_header` once it has its own."""
    common = _lines('    add_header {} "{}";', EVERYWHERE)

    def location(where: str, headers: Mapping[str, str]) -> str:
        own = _lines('    add_header {} "{}";', headers)
        kinds = "".join(f"{kind} {' '.join(names)}; " for kind, names in _types().items())
        known = f"    include mime.types;\n    types {{ {kinds}}}\n"
        return f"location {where} {{\n{common}{own}{known}}}\n"

    return _comment("#", "Inside of `server { … }`, with the page at /play/") + "".join(
        [
            location("/play/", FRESH),
            location("/play/assets/", IMMUTABLE),
            location("= /play/index.html", {**FRESH, **UNFRAMED}),
        ]
    )


def apache() -> str:
    """`.htaccess`, in the page's folder."""
    types = "".join(f"AddType {kind} {' '.join(names)}\n" for kind, names in _types().items())
    return (
        _comment("#", "As `.htaccess` beside index.html; needs mod_headers and AllowOverride All")
        + types
        + _lines('Header always set {} "{}"', EVERYWHERE)
        + _lines('Header set {} "{}"', FRESH)
        + '<If "%{REQUEST_URI} =~ m#/assets/[^/]+$#">\n'
        + _lines('  Header set {} "{}"', IMMUTABLE)
        + "</If>\n"
        + '<Files "index.html">\n'
        + _lines('  Header set {} "{}"', UNFRAMED)
        + "</Files>\n"
    )


def caddy() -> str:
    """Caddyfile: it sorts the lines itself, so no two set the same header of a file."""
    return (
        _comment("#", "A site of its own; put the page's folder in the place of /srv/play")
        + "play.example.org {\n\troot * /srv/play\n\tencode\n\tfile_server\n"
        + _lines('\theader {} "{}"', EVERYWHERE)
        + "\t@index path / /index.html\n"
        + _lines('\theader @index {} "{}"', UNFRAMED)
        + "\t@named path /assets/*\n\t@other not path /assets/*\n"
        + _lines('\theader @named {} "{}"', IMMUTABLE)
        + _lines('\theader @other {} "{}"', FRESH)
        + "".join(f'\theader *{s} Content-Type "{MIME_TYPES[s]}"\n' for s in SELDOM_KNOWN)
        + "}\n"
    )


HOSTS: dict[str, Callable[[], str]] = {
    "_headers": static_host,
    "nginx.conf": nginx,
    "htaccess": apache,
    "Caddyfile": caddy,
}
"""Files for hosts by name."""


def _lines(form: str, headers: Mapping[str, str]) -> str:
    return "".join(form.format(name, value) + "\n" for name, value in headers.items())


def _comment(sign: str, where: str) -> str:
    return f"{sign} {where}.\n{sign} Written by mlcweb/page_headers.py.\n"


if __name__ == "__main__":
    for name, text in HOSTS.items():
        (Path(sys.argv[1]) / name).write_text(text())
