"""`register_worker`, which connects a worker of this process."""

from __future__ import annotations

from dataclasses import replace

from ._output_marks import mark_output
from ._process import PROCESS
from ._requests import InitOptions, ReconnectOptions
from ._testing_hook import Offer, offers
from ._worker import Worker


def register_worker(url: str | None = None, options: InitOptions | None = None) -> Worker:
    """
    Connect to the engine, and stay connected until ``shutdown()``.

    While a test engine of ``engine_sdk.testing`` runs in this process, it connects to that one.

    Waits up to 30 s for the connection; after that the worker keeps trying in the background.
    The program stays alive after its main thread has ended. If called in the main thread of a
    program without signal handlers of its own, Ctrl-C and SIGTERM shut it down cleanly.

    Args:
        url: Address of the engine; default ``ENGINE_URL``, else ``ws://127.0.0.1:49134``.
        options: Name and behaviour of the worker.

    Returns:
        The worker.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` when the address is invalid.

    Example:
        worker = register_worker(options=InitOptions(worker_name="math"))

    """
    if offers:
        return _register_in_test(url, options or InitOptions(), offers[-1])
    worker = Worker(url, options or InitOptions())
    mark_output()
    PROCESS.add(worker)
    try:
        worker.start()
    except BaseException:
        worker.leave()
        PROCESS.remove(worker)
        raise
    return worker


def _register_in_test(url: str | None, options: InitOptions, offer: Offer) -> Worker:
    """Connect to the engine of a test, and to that of the next one when this ends."""
    at_once = ReconnectOptions(first_ms=10, max_ms=15)
    worker = Worker(url, replace(options, reconnect=at_once), offer.dial)
    worker.end_with_process()
    offer.adopt(worker)
    worker.start()
    return worker
