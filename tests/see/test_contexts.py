# SPDX-License-Identifier: Apache-2.0
"""An audit and a no_copy hold in the context that entered them, and in no other."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import bridge

ARRAY = np.arange(3.0)
FOREIGN = ARRAY.astype(">f8")


def share() -> None:
    bridge.from_dlpack(ARRAY)


def copy() -> None:
    bridge.from_dlpack(FOREIGN)


def forbidden() -> bool:
    try:
        copy()
    except BufferError:
        return True
    return False


def test_nested_audits_both_record() -> None:
    with bridge.audit() as outer:
        share()
        with bridge.audit() as inner:
            copy()
        share()
    assert len(inner) == 1
    assert len(outer) == 3
    assert outer.copied_bytes == inner.copied_bytes == 24


def test_no_copy_and_audit_work_inside_each_other() -> None:
    with bridge.audit() as log, bridge.no_copy() as nothing:
        share()
        assert forbidden()
    assert nothing is None
    assert [record.copied for record in log] == [False]
    with bridge.no_copy():
        with bridge.audit() as log:
            share()
            assert forbidden()
        assert forbidden()
        with bridge.no_copy():
            assert forbidden()
        assert forbidden()
    assert not forbidden()
    assert [record.copied for record in log] == [False]


def test_an_exception_leaves_the_context() -> None:
    with pytest.raises(ZeroDivisionError), bridge.no_copy():
        raise ZeroDivisionError
    assert not forbidden()
    with pytest.raises(TypeError), bridge.audit() as log:
        bridge.from_dlpack(share())
    share()
    assert len(log) == 1


def test_threads_do_not_feel_it() -> None:
    seen = {}

    def work(name: str) -> None:
        with bridge.audit() as log:
            seen[name] = (forbidden(), log)

    with bridge.no_copy(), bridge.audit() as log:
        thread = threading.Thread(target=contextvars.Context().run, args=(work, "other"))
        thread.start()
        thread.join()
        assert forbidden()
    assert len(log) == 0
    assert seen["other"][0] is False
    assert seen["other"][1].copied_bytes == 24


def test_many_threads_at_once_each_see_their_own() -> None:
    start = threading.Barrier(4)
    wrong = []

    def work(n: int) -> None:
        start.wait()
        for _ in range(50):
            with bridge.audit() as log:
                for _ in range(n):
                    copy()
            if len(log) != n or log.copied_bytes != 24 * n:
                wrong.append(log)
            with bridge.no_copy():
                if not forbidden():
                    wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    with bridge.audit() as log:
        copy()
    assert len(log) == 1


def test_tasks_do_not_feel_each_other() -> None:
    async def watching(turns: int) -> int:
        with bridge.audit() as log:
            for _ in range(turns):
                copy()
                await asyncio.sleep(0)
        return len(log)

    async def refusing() -> bool:
        with bridge.no_copy():
            await asyncio.sleep(0)
            refused = forbidden()
            await asyncio.sleep(0)
            return refused

    async def free() -> bool:
        await asyncio.sleep(0)
        return forbidden()

    async def main() -> list[object]:
        return await asyncio.gather(watching(3), refusing(), free(), watching(5), free())

    assert asyncio.run(main()) == [3, True, False, 5, False]


def test_a_task_begins_in_the_context_that_made_it() -> None:
    async def child() -> bool:
        return forbidden()

    async def main() -> tuple[bool, bool]:
        with bridge.no_copy():
            inside = asyncio.create_task(child())
        outside = asyncio.create_task(child())
        # the context was left before either ran
        return await inside, await outside

    async def waited() -> bool:
        with bridge.no_copy():
            return await asyncio.create_task(child())

    assert asyncio.run(main()) == (False, False)
    assert asyncio.run(waited()) is True


def test_generators_may_end_in_any_order() -> None:
    def watching() -> Iterator[object]:
        with bridge.audit() as log:
            while True:
                yield log

    first, second = watching(), watching()
    one, other = next(first), next(second)
    share()
    first.close()  # entered first, left first
    share()
    second.close()
    share()
    assert len(one) == 1
    assert len(other) == 2


def test_a_context_left_elsewhere_is_left_everywhere() -> None:
    def refusing() -> Iterator[None]:
        with bridge.no_copy():
            yield

    generator = refusing()
    next(generator)
    assert forbidden()
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert not forbidden()
    generator = refusing()
    next(generator)
    assert forbidden()
    del generator
    gc.collect()
    assert not forbidden()


def test_a_context_is_entered_once_at_a_time() -> None:
    refuse = bridge.no_copy()
    with refuse, pytest.raises(RuntimeError, match="entered already"):
        refuse.__enter__()
    assert not forbidden()
    with refuse:
        assert forbidden()
    assert not forbidden()
    refuse.__exit__(None, None, None)  # not entered: nothing to leave
    assert not forbidden()


def test_an_audit_goes_on_when_entered_again() -> None:
    watch = bridge.audit()
    with watch as first:
        share()
    share()
    with watch as second:
        share()
    assert first is second
    assert len(first) == 2


def test_a_producer_that_converts_is_part_of_the_conversion() -> None:
    class Producer:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **kwargs: object) -> object:
            return bridge.from_dlpack(FOREIGN).__dlpack__(max_version=(1, 3))

    with bridge.audit() as log:
        bridge.from_dlpack(Producer())
    (record,) = log.records
    assert record.nbytes == 24
    assert "byte order" in record.reason
    with bridge.no_copy(), pytest.raises(BufferError, match="byte order"):
        bridge.from_dlpack(Producer())


def test_an_error_under_way_does_not_stay() -> None:
    class Failing:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **kwargs: object) -> object:
            raise KeyboardInterrupt

    with bridge.audit() as log:
        with pytest.raises(KeyboardInterrupt):
            bridge.from_dlpack(Failing())
        share()
    assert len(log) == 1
