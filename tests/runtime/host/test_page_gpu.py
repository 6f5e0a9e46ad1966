"""The JavaScript half of a page's GPU, run by Node.js on a GPU and a clock of our own."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from mlcweb.runtime.host.page_script import script_text

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is not there")

SETTING = """
const calls = [];
let works = [];
let lose;
let silent = "";
let messages = [];
const answer = (name, value) => (name === silent ? new Promise(() => {}) : Promise.resolve(value));
const buffer = (size) => ({
  size, destroy() { calls.push("destroy"); }, mapAsync: () => queue.onSubmittedWorkDone(),
  getMappedRange: () => new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]).slice(0, size).buffer,
});
const queue = {
  submit() { calls.push("submit"); },
  writeBuffer(target, at, bytes) { calls.push(["write", at, [...bytes]]); },
  onSubmittedWorkDone: () => new Promise((done) => works.push(done)),
};
const pass = {
  setPipeline() {}, setBindGroup() {}, end() {},
  dispatchWorkgroups(...grid) { calls.push(grid); },
};
const device = {
  queue, limits: { maxBufferSize: 64 }, features: new Set(),
  lost: new Promise((done) => { lose = (message) => done({ message }); }),
  destroy() { calls.push("destroyed"); },
  pushErrorScope() {}, popErrorScope: () => answer("popErrorScope", null),
  createShaderModule: () => ({
    getCompilationInfo: () => answer("getCompilationInfo", { messages }),
  }),
  createComputePipelineAsync: () =>
    answer("createComputePipelineAsync").then(() => { throw new Error("no room"); }),
  createBuffer: ({ size }) => buffer(size),
  createCommandEncoder: () => ({
    beginComputePass: () => pass, finish() {}, copyBufferToBuffer() { calls.push("copy"); },
  }),
};
const adapter = {
  limits: device.limits, features: device.features, info: { vendor: "us" },
  requestDevice: async () => device,
};
let now = 0;
const timers = [];
const settle = () => new Promise((done) => setImmediate(done));
globalThis.performance = { now: () => now };
globalThis.setTimeout = (run, after, ...values) => {
  const timer = { at: now + after, run: () => run(...values), due: true };
  timers.push(timer);
  return timer;
};
globalThis.clearTimeout = (timer) => { timer.due = false; };
async function advance(seconds) {
  const end = now + seconds * 1e3;
  for (;;) {
    await settle();
    const due = timers.filter((timer) => timer.due && timer.at <= end);
    const next = due.sort((one, other) => one.at - other.at)[0];
    if (!next) break;
    now = next.at;
    next.due = false;
    next.run();
  }
  now = end;
}
Object.defineProperty(globalThis, "navigator", {
  value: { gpu: { requestAdapter: async () => adapter } }, writable: true,
});
"""


def evaluate(body: str) -> Any:
    """What the body of an asynchronous function returns, which has the open `gpu`."""
    setting = f"{SETTING} const host = {script_text('page_gpu')};"
    opened = 'const gpu = await host.open(["maxBufferSize"], [], 30);'
    program = f"""{setting} (async () => {{ {opened} {body} }})().then((result) => {{
        console.log(JSON.stringify(result)); process.exit(); }});"""
    assert NODE is not None
    done = subprocess.run([NODE, "-e", program], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_limits_and_name():
    assert evaluate("return [gpu.limits.maxBufferSize, gpu.description]") == [64, "us"]


def test_launches_are_handed_over_together_and_before_what_follows():
    calls = evaluate(
        """
        for (let i = 0; i < 3; i += 1) gpu.dispatch(null, null, i, 1, 1);
        gpu.write(buffer(8), new Uint8Array([1, 2, 3, 4, 5]));
        return calls;"""
    )
    assert calls[:4] == [[0, 1, 1], [1, 1, 1], [2, 1, 1], "submit"]
    # What is no multiple of four bytes is filled up.
    assert [call[1] for call in calls[4:]] == [0, 4]
    assert calls[5][2] == [5, 0, 0, 0]


def test_a_copy_of_memory():
    body = """
        gpu.dispatch(null, null, 1, 1, 1);
        const copy = gpu.read(buffer(8), 6);
        works.forEach((done) => done());
        return [[...await copy], calls, gpu.lost];"""
    copied, calls, lost = evaluate(body)
    assert copied == [1, 2, 3, 4, 5, 6]
    assert calls == [[1, 1, 1], "copy", "submit", "destroy"]
    assert lost == ""


def test_what_finishes_nothing_is_given_up():
    body = """
        const waiting = gpu.wait();
        await advance(29);
        const before = gpu.lost;
        await advance(2);
        await waiting;
        return [before, gpu.lost];"""
    before, lost = evaluate(body)
    assert before == ""
    assert "given up after 30 s without a result" in lost


def test_what_was_given_up_is_destroyed_when_its_work_is_done():
    """Until then a browser would wait for the work, and draw nothing."""
    body = """
        const waiting = gpu.wait();
        await advance(31);
        await waiting;
        const before = [...calls];
        works.forEach((done) => done());
        await settle();
        return [before, calls];"""
    assert evaluate(body) == [[], ["destroyed"]]


@pytest.mark.parametrize(
    ("question", "silent"),
    [
        ("createBuffer(1 << 20)", "popErrorScope"),
        ("createPipeline('', 'main')", "popErrorScope"),
        ("createPipeline('', 'main')", "getCompilationInfo"),
        ("createPipeline('', 'main')", "createComputePipelineAsync"),
        ("read(buffer(8), 8)", "mapAsync"),
    ],
)
def test_no_question_waits_longer(question, silent):
    body = f"""
        silent = "{silent}";
        let answer = "none";
        gpu.{question}.then((value) => {{ answer = value; }});
        await advance(29);
        const before = [answer, gpu.lost];
        await advance(40);
        return [before, answer, gpu.lost.slice(0, 20)];"""
    before, answer, lost = evaluate(body)
    assert before == ["none", ""]
    assert not answer
    assert lost == "The GPU was given up"


def test_why_there_is_no_pipeline():
    body = """
        const refused = await gpu.createPipeline("", "main");
        messages = [{ type: "error", message: "no such name", lineNum: 3 }];
        return [refused, await gpu.createPipeline("", "main"), gpu.lost];"""
    assert evaluate(body) == [
        {"message": "no room", "line": 0},
        {"message": "no such name", "line": 3},
        "",
    ]


def test_as_long_as_something_is_finished_there_is_patience():
    body = """
        for (let i = 0; i < 8; i += 1) { gpu.dispatch(null, null, 1, 1, 1); gpu.handOver(); }
        const waiting = gpu.wait();
        for (let i = 0; i < 8; i += 1) { await advance(20); works.shift()(); }
        works.forEach((done) => done());
        await waiting;
        return gpu.lost;"""
    assert evaluate(body) == ""


def test_a_device_that_goes_away_is_not_waited_for():
    body = """
        const waiting = gpu.wait();
        lose("unplugged");
        await waiting;
        return gpu.lost;"""
    assert evaluate(body) == "The GPU was lost (unplugged)."


@pytest.mark.parametrize("silent", ["navigator.gpu.requestAdapter", "adapter.requestDevice"])
def test_a_browser_that_does_not_answer_is_not_waited_for(silent):
    """Its GPU may be busy with what another device was given up for."""
    body = f"""
        {silent} = () => new Promise(() => {{}});
        let reason = "";
        host.open([], [], 30).catch((error) => {{ reason = error.message; }});
        await advance(29);
        const before = reason;
        await advance(2);
        return [before, reason];"""
    assert evaluate(body) == ["", "this browser's GPU has not answered for 30 s"]


def test_who_asks_again_gets_what_came_late():
    body = """
        let answer;
        const requested = [];
        navigator.gpu.requestAdapter = () => {
          requested.push(1);
          return new Promise((done) => { answer = done; });
        };
        const errors = [];
        const failed = ({ name, message }) => { errors.push(`${name}: ${message}`); };
        for (const seconds of [31, 4]) {
          host.open([], [], 30).catch(failed);
          await advance(seconds);
        }
        answer(adapter);
        await settle();
        const opened = await host.open([], [], 30);
        navigator.gpu.requestAdapter = async () => adapter;
        const other = await host.open([], [], 30);
        return [errors, requested.length, opened.description, opened !== other];"""
    errors = [
        "TimeoutError: this browser's GPU has not answered for 30 s",
        "TimeoutError: this browser's GPU has not answered for 3 s",
    ]
    assert evaluate(body) == [errors, 1, "us", True]
