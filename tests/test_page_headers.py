"""The files for hosts in `web/hosts` say what `mlcweb serve` sends."""

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from mlcweb.page_headers import HOSTS, ISOLATION_HEADERS, SELDOM_KNOWN
from mlcweb.server import PageServer

WEB = Path(__file__).parents[1] / "web"

PATHS = (
    "index.html", "embed.html", "embed.js", "assets/main-B3xk9_2Q.js", "pyodide/pyodide.mjs",
    "pyodide/pyodide.asm.wasm", "wheels/mlcweb-1.whl", "release.json",
)  # fmt: skip


def netlify(text: str, path: str) -> dict[str, str]:
    """Headers by rules, each a path and indented lines; a value is joined to those before."""
    headers: dict[str, str] = {}
    applies = False
    for line in text.splitlines():
        if line.startswith("/"):
            applies = fnmatchcase(path, line)
        elif applies and not line.startswith("#"):
            name, value = line.strip().split(": ", 1)
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def nginx(text: str, path: str) -> dict[str, str]:
    """The headers of the exact location, or else of that with the longest prefix."""
    locations: dict[str, dict[str, str]] = {}
    path = "/play" + path
    for where, body in re.findall(r"location (.+?) \{\n(.*?)\n\}", text, re.DOTALL):
        headers = dict(re.findall(r'add_header (\S+) "(.*)";', body))
        locations[where] = headers | types(re.search(r"types \{ (.*) \}", body)[1], ";", path)
    exact = f"= {path}"
    return locations[exact if exact in locations else max(filter(path.startswith, locations))]


def types(text: str, end: str, path: str) -> dict[str, str]:
    """The type of a path, where lines of a type and its suffixes say it."""
    for line in filter(None, text.split(end)):
        kind, *suffixes = line.split()
        if path.endswith(tuple(f".{suffix}" for suffix in suffixes)):
            return {"Content-Type": kind}
    return {}


def apache(text: str, path: str) -> dict[str, str]:
    """What stands outside of sections, then inside of those that match."""
    kinds = "\n".join(re.findall(r"AddType (.*)", text))
    headers = types(kinds, "\n", path)
    inside = True
    for line in text.splitlines():
        if condition := re.match(r'<If "%\{REQUEST_URI\} =~ m#(.*)#">', line):
            inside = re.search(condition[1], path) is not None
        elif name := re.match('<Files "(.*)">', line):
            inside = path.endswith("/" + name[1])
        elif line.startswith("</"):
            inside = True
        elif inside and (said := re.match(r'\s*Header (?:always )?set (\S+) "(.*)"', line)):
            headers[said[1]] = said[2]
    return headers


def caddy(text: str, path: str) -> dict[str, str]:
    """The headers of all lines whose matcher applies; none may be set twice."""
    matchers: dict[str, bool] = {}
    headers: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if matcher := re.match(r"(@\w+) (not )?path (.*)", line):
            found = any(fnmatchcase(path, pattern) for pattern in matcher[3].split())
            matchers[matcher[1]] = found is not bool(matcher[2])
        elif said := re.match(r'header (?:([@*]\S+) )?(\S+) "(.*)"', line):
            where, name, value = said.groups()
            if matchers.get(where, not where or fnmatchcase(path, where)):
                assert name not in headers
                headers[name] = value
    return headers


READERS: dict[str, Callable[[str, str], dict[str, str]]] = {
    "_headers": netlify, "nginx.conf": nginx, "htaccess": apache, "Caddyfile": caddy,
}  # fmt: skip

OF_THE_REQUEST = {"ETag", "Vary", "Accept-Ranges", "Content-Length"}
"""What servers say of their own accord."""


def test_the_files_are_those_of_the_table():
    assert {path.name: path.read_text() for path in (WEB / "hosts").iterdir()} == {
        name: text() for name, text in HOSTS.items()
    }


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", PATHS)
def test_a_host_sends_what_our_server_sends(tmp_path, host, path):
    (tmp_path / "index.html").touch()
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.touch()
    with PageServer(tmp_path) as server:
        wanted = server.answer(f"/{path}").headers
    wanted = {name: value for name, value in wanted.items() if name not in OF_THE_REQUEST}
    if file.suffix not in SELDOM_KNOWN:
        del wanted["Content-Type"]
    else:
        wanted["Content-Type"] = wanted["Content-Type"].partition(";")[0]
    if host == "_headers" and not path.startswith("assets/"):
        del wanted["Cache-Control"]  # as these hosts say anyway
    said = READERS[host](HOSTS[host](), f"/{path}")
    if "Content-Type" in said:
        said["Content-Type"] = said["Content-Type"].partition(";")[0]
    assert said == wanted


def test_only_the_playground_itself_is_not_for_frames(tmp_path):
    for name in ("index.html", "embed.html"):
        (tmp_path / name).touch()
    with PageServer(tmp_path) as server:
        policies = [
            server.answer(path).headers.get("Content-Security-Policy")
            for path in ("/", "/index.html", "/embed.html")
        ]
    assert policies == ["frame-ancestors 'self'"] * 2 + [None]


def test_the_service_worker_adds_the_headers_that_isolate():
    text = (WEB / "src" / "offline" / "isolation.ts").read_text()
    assert dict(re.findall(r'"([\w-]+)": ("[\w-]+")', text)) == {
        name: json.dumps(value) for name, value in ISOLATION_HEADERS.items()
    }
