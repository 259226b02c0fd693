"""The channel route of an engine on a real socket, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

END = object()


class ChannelEngine:
    """Relays channels ``c0``, ``c1`` … whose keys are ``key``; holds four messages of each."""

    def __init__(self) -> None:
        self.claims: list[str] = []
        self.reads_on = True
        """Whether it reads what a writer sends when the reader has left; else it is full then."""
        self._abandoned: set[str] = set()
        self._queues: dict[str, asyncio.Queue[Any]] = {}
        self._ends: dict[tuple[str, str], ServerConnection] = {}
        self._endings: dict[str, tuple[int, str]] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(20)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/base?token=t"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def cut(self, channel_id: str, direction: str) -> None:
        """Drop the connection of an end."""
        end = self._ends[channel_id, direction]
        self._loop.call_soon_threadsafe(end.transport.abort)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        options: Any = {"max_size": None, "compression": None, "process_request": self._check}
        async with serve(self._relay, "127.0.0.1", 0, **options) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            self._ready.set()
            await self._stop.wait()
            server.close(close_connections=False)
            for id_ in self._queues:
                self._abandon(id_)
            for end in self._ends.values():
                end.transport.abort()

    def _abandon(self, id_: str) -> None:
        """Drop what waits for a reader, and all that follows: the writer's part must not wait."""
        self._abandoned.add(id_)
        while not self._queues[id_].empty():
            self._queues[id_].get_nowait()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        query = parse_qs(urlsplit(request.path).query)
        assert query["token"] == ["t"]
        return None if query["key"] == ["key"] else connection.respond(404, "Channel not found\n")

    async def _relay(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        parts = urlsplit(connection.request.path)
        id_, direction = parts.path.rpartition("/")[2], parse_qs(parts.query)["dir"][0]
        self.claims.append(f"{direction} {parts.path}")
        if (id_, direction) in self._ends:
            await connection.close(1008, "claimed")
            return
        self._ends[id_, direction] = connection
        queue = self._queues.setdefault(id_, asyncio.Queue(4))
        try:
            if direction == "write":
                await self._read_from(connection, id_, queue)
            else:
                await self._write_to(connection, id_, queue)
        except ConnectionClosed:
            pass

    async def _read_from(
        self, connection: ServerConnection, id_: str, queue: asyncio.Queue[Any]
    ) -> None:
        try:
            async for message in connection:
                if id_ not in self._abandoned:
                    await queue.put(message)
        except ConnectionClosed:
            pass
        code, reason = connection.close_code, connection.close_reason
        complete = (1000, "stream_complete")
        lost = (4001, reason or "the writer was lost")
        self._endings[id_] = complete if code == 1000 else lost
        await queue.put(END)

    async def _write_to(
        self, connection: ServerConnection, id_: str, queue: asyncio.Queue[Any]
    ) -> None:
        left = asyncio.ensure_future(connection.wait_closed())
        while True:
            taken = asyncio.ensure_future(queue.get())
            await asyncio.wait({taken, left}, return_when=asyncio.FIRST_COMPLETED)
            if left.done():
                taken.cancel()
                break
            message = taken.result()
            if message is END:
                left.cancel()
                await connection.close(*self._endings[id_])
                return
            try:
                await connection.send(message)
            except ConnectionClosed:
                break
        if self.reads_on:
            self._abandon(id_)
        writer = self._ends.get((id_, "write"))
        while not self.reads_on and writer and writer.transport.is_reading():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        if writer is not None:
            await writer.close(1000, "reader_closed")
