"""The threads that run what the event loop must not wait for."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from threading import Barrier

import pytest

from polymnia.transports.http.workers import Workers
from tests.processes import TIMEOUT_S


def run(use: Callable[[Workers], Awaitable[None]], *, usual: int = 2, limit: int = 8) -> None:
    workers = Workers("test", usual=usual, limit=limit)

    async def main() -> None:
        await asyncio.wait_for(use(workers), TIMEOUT_S)

    with closing(workers):
        asyncio.run(main())


def test_a_job_runs_on_a_thread_and_its_result_comes_back_to_the_loop() -> None:
    async def use(workers: Workers) -> None:
        thread = await workers.run(threading.current_thread)
        assert thread is not threading.current_thread()

    run(use)


def test_what_a_job_raises_comes_back_and_its_thread_goes_on() -> None:
    def fail() -> None:
        raise ValueError("broken")

    async def use(workers: Workers) -> None:
        with pytest.raises(ValueError, match="broken"):
            await workers.run(fail)
        assert await workers.run(lambda: "next") == "next"

    run(use, usual=1, limit=1)


def test_a_failing_receiver_does_not_hold_up_other_results() -> None:
    def refuse(job: object) -> None:
        raise ValueError("not wanted")

    async def use(workers: Workers) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, details: None)
        workers.submit(lambda: 1, refuse)
        assert await workers.run(lambda: 2) == 2

    run(use, usual=1, limit=1)


def test_jobs_that_wait_for_one_another_get_threads_beyond_the_usual() -> None:
    meeting = Barrier(6)

    async def use(workers: Workers) -> None:
        await asyncio.gather(*(workers.run(lambda: meeting.wait(TIMEOUT_S)) for _ in range(6)))

    run(use, usual=2, limit=6)


def test_short_jobs_need_no_more_than_the_usual_threads() -> None:
    async def use(workers: Workers) -> None:
        jobs = (workers.run(threading.current_thread) for _ in range(100))
        assert len(set(await asyncio.gather(*jobs))) <= 8

    run(use)


def test_threads_beyond_the_usual_end_when_nothing_is_left_to_do() -> None:
    meeting = Barrier(6)

    async def use(workers: Workers) -> None:
        before = set(threading.enumerate())
        await asyncio.gather(*(workers.run(lambda: meeting.wait(TIMEOUT_S)) for _ in range(6)))
        started = set(threading.enumerate()) - before
        assert await workers.run(lambda: "idle") == "idle"
        for thread in started:
            if sum(each.is_alive() for each in started) > 2:
                await asyncio.to_thread(thread.join, 0.1)
        assert sum(thread.is_alive() for thread in started) <= 2

    run(use, usual=2, limit=6)
