"""A test without an engine: pip install pytest websockets; python -m pytest."""

from engine_sdk.testing import engine  # noqa: F401 - a fixture; pytest.ini says where it is


def test_count_goes_on_from_what_is_stored(engine):  # noqa: F811
    import prime_worker  # noqa: F401 - its register_worker() connects to the test's engine

    engine.fake("stream::get", {"below": 20, "done": 10, "primes": 4})
    update = engine.fake("stream::update", None)

    assert engine.call("primes::count", {"id": "a", "below": 20}) == {"primes": 8}

    last = update.calls[-1].payload["ops"][0]["value"]
    assert last == {"below": 20, "done": 20, "primes": 8}
