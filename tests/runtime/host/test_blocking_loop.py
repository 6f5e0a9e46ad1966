"""A loop inside of a loop: what a page does whose browser cannot suspend Python."""

import asyncio

import pytest

from mlcweb.runtime.host.blocking_loop import BlockingLoop, run_blocking


async def twice(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_runs_where_no_loop_runs():
    assert run_blocking(twice(21)) == 42


def test_runs_inside_of_a_running_loop_which_goes_on():
    async def outer() -> list[object]:
        task = asyncio.current_task()
        inner = run_blocking(twice(4))
        assert asyncio.current_task() is task
        return [inner, await twice(5), run_blocking(twice(6))]

    assert asyncio.run(outer()) == [8, 10, 12]


def test_what_arrives_by_the_poll_settles_futures():
    polled: list[float] = []

    async def work() -> str:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockingLoop)
        answer: asyncio.Future[str] = loop.create_future()

        def poll(seconds: float) -> None:
            polled.append(seconds)
            if len([each for each in polled if each > 0]) == 3 and not answer.done():
                answer.set_result("there")

        loop.poll = poll
        task = asyncio.ensure_future(twice(1))
        done, _ = await asyncio.wait({answer, task}, return_when=asyncio.FIRST_COMPLETED)
        assert done == {task}
        return await answer

    assert run_blocking(work()) == "there"
    # Python gets a moment now and then, so that it hears of an interrupt.
    assert max(polled) == 0.1


def test_an_interrupt_in_the_poll_ends_the_work():
    closed = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockingLoop)

        def poll(seconds: float) -> None:
            raise KeyboardInterrupt

        loop.poll = poll
        try:
            await loop.create_future()
        finally:
            loop.poll = None
            closed.append(True)

    async def outer() -> None:
        with pytest.raises(KeyboardInterrupt):
            run_blocking(work())
        assert await twice(1) == 2

    asyncio.run(outer())
    assert closed == [True]


def test_waiting_for_what_cannot_happen_is_an_error_rather_than_a_hang():
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="cannot happen while Python is blocked"):
        run_blocking(work())


def test_a_failure_reaches_the_caller_and_leaves_no_task_behind():
    ended = []

    async def endless() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(True)

    async def work() -> None:
        task = asyncio.ensure_future(endless())
        await asyncio.sleep(0)
        assert not task.done()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_blocking(work())
    assert ended == [True]
