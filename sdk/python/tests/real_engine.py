"""
A minimal engine on a real socket, in a process of its own, that answers each call itself.

The first line it prints is its port. ``echo`` returns the payload, ``drop`` closes the connection,
``silent`` never answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response


async def answer(connection: ServerConnection) -> None:
    request = connection.request
    headers = dict(request.headers.raw_items()) if request else {}
    ids = {"worker_id": "w", "reattach_token": "t"}
    await connection.send(json.dumps({"type": "workerregistered", **ids, "capabilities": []}))
    async for frame in connection:
        message: dict[str, Any] = json.loads(frame)
        if message.get("invocation_id") is None or message["function_id"] == "silent":
            continue
        ids = {key: message[key] for key in ("invocation_id", "function_id")}
        data: Any = message.get("data")
        if message["function_id"] == "headers":
            data = headers
        if message["function_id"] == "drop":
            connection.transport.abort()
            return
        await connection.send(json.dumps({"type": "invocationresult", **ids, "result": data}))


def refuse(connection: ServerConnection, request: Request) -> Response | None:
    if "refused" in request.path:
        return connection.respond(401, "no\n")
    return None


async def main() -> None:
    options: Any = {"max_size": None, "compression": None, "process_request": refuse}
    if "batch" in sys.argv:
        options["subprotocols"] = ["engine.batch.v1"]
    async with serve(answer, "127.0.0.1", 0, **options) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
