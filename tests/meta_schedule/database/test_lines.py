"""Whatever becomes of the files, what is whole in them is read, and nothing raises."""

import base64
import functools
import json
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir import TVMError
from mlcweb.meta_schedule.database import JSONDatabase
from mlcweb.meta_schedule.database.json_lines import RECORDS, WORKLOADS
from tests.meta_schedule.database.records import Other, record, times
from tests.meta_schedule.matmul import Matmul
from tests.strategies import examples


@functools.cache
def files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        database = JSONDatabase(work_dir=folder)
        for number in range(4):
            database.commit_tuning_record(record(database, 1.0 + number, factor=2**number))
            database.commit_tuning_record(record(database, 11.0 + number, module=Other))
        return {name: Path(folder, name).read_bytes() for name in (WORKLOADS, RECORDS)}


FOREIGN = st.one_of(
    st.binary(max_size=30).filter(lambda data: b"\n" not in data),
    st.sampled_from([b"", b"null", b"[0]", b"[true,[]]", b"[[[[[[", b'["1","AAAA"]', b"[0,[1,2]]",
                     b'[9,[[[],[]],[1.0],null,null]]', b'[0,[[[],[]],["x"],null,null]]',
                     b'[0,[[[["No",[],[],[]]],[]],[1.0],null,[["TENSOR",1]]]]', b"1e999",
                     b'[0,[[[],[]],[1.0],{"kind":"vax"},null]]']),
)  # fmt: skip


def opened(folder: Path) -> JSONDatabase:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return JSONDatabase(work_dir=folder)


def held(content: dict[str, bytes]) -> JSONDatabase:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in content.items():
            Path(folder, name).write_bytes(data)
        return opened(Path(folder))


@examples(60)
@given(data=st.data())
def test_records_that_are_whole_are_read_wherever_they_stand(data) -> None:
    whole = files()[RECORDS].splitlines()
    lines = data.draw(st.permutations([*whole, *data.draw(st.lists(FOREIGN, max_size=4))]))
    content = b"\n".join(lines)
    content = content[: data.draw(st.integers(0, len(content)))]
    readable = [number for number in content.split(b"\n") if number in whole]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / WORKLOADS).write_bytes(files()[WORKLOADS])
        (folder / RECORDS).write_bytes(content)
        database = opened(folder)
        assert len([t for t in times(database) if t > 0.5]) >= len(readable)
        before = times(database)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            database.commit_tuning_record(record(database, 99.0))
        assert times(opened(folder)) == [*before, 99.0]


JSON = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.just([]), st.just({}), st.just([[]]), st.just({"kind": 1}),
)  # fmt: skip


def with_another_value(item, data):
    """A JSON value with one value in it, at any depth, replaced or left out."""
    places = [()]
    for place in places:
        inner = functools.reduce(lambda value, key: value[key], place, item)
        if isinstance(inner, (list, dict)):
            keys = inner if isinstance(inner, dict) else range(len(inner))
            places += [(*place, key) for key in keys]
    place = data.draw(st.sampled_from(places))
    value = data.draw(JSON)
    if not place:
        return value
    parent = functools.reduce(lambda value, key: value[key], place[:-1], item)
    if isinstance(parent, list) and data.draw(st.booleans()):
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    return item


@examples(80)
@given(data=st.data())
def test_whatever_a_line_holds_it_is_read_or_skipped(data) -> None:
    name = data.draw(st.sampled_from([RECORDS, WORKLOADS]))
    lines = files()[name].decode().splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    item = json.loads(lines[number])
    if name == WORKLOADS:
        graph = with_another_value(json.loads(base64.b64decode(item[1])[8:]), data)
        text = json.dumps(graph).encode()
        item[1] = base64.b64encode(len(text).to_bytes(8, "little") + text).decode()
    else:
        item = with_another_value(item, data)
    lines[number] = json.dumps(item)
    database = held({**files(), name: "\n".join(lines).encode()})
    assert len(database) >= (4 if name == WORKLOADS else 7)
    known = {r.trace_text for r in held(files()).get_all_tuning_records()}
    for each in database.get_all_tuning_records():
        assert each.as_json()
        if each.trace_text in known and name == RECORDS:
            continue
        with suppress(TVMError, ValueError):
            each.schedule()
        assert not (each.is_valid and each.seconds < 0)


@examples(60)
@given(data=st.data())
def test_a_damaged_workload_costs_its_own_records_alone(data) -> None:
    content = bytearray(files()[WORKLOADS])
    end_of_first = content.index(b"\n")
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, end_of_first - 1))] = data.draw(
            st.integers(0, 255).filter(lambda byte: byte != 10)
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / WORKLOADS).write_bytes(bytes(content))
        (folder / RECORDS).write_bytes(files()[RECORDS])
        database = opened(folder)
        found = database.query_tuning_record(Other)
        assert found is not None
        assert found.seconds == 11.0  # which programs they made is in a third file


def test_numbers_of_lost_workloads_are_not_given_to_other_programs(tmp_path: Path) -> None:
    (tmp_path / WORKLOADS).write_bytes(files()[WORKLOADS][:-40])
    (tmp_path / RECORDS).write_bytes(files()[RECORDS])
    database = opened(tmp_path)
    assert times(database) == [1.0, 2.0, 3.0, 4.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        database.commit_tuning_record(record(database, 5.0, module=Other))
    again = opened(tmp_path)
    assert times(again) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert again.query_tuning_record(Matmul).seconds == 1.0
    assert again.query_tuning_record(Other).seconds == 5.0


def test_no_python_in_a_workload_is_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    script = "# from tvm.script import tir as T\n" + Matmul.script()
    program = script.replace("T.grid(32,", f"T.grid(32 + len([open({str(made)!r}, 'w')]),")
    assert program != script
    for text, count in ((script, 1), (program, 0)):
        (tmp_path / WORKLOADS).write_text(json.dumps(["1", text]) + "\n")
        (tmp_path / RECORDS).write_text("")
        assert len(opened(tmp_path).workloads) == count
    assert not made.exists()
