"""A test without an engine: pip install pytest websockets; python -m pytest."""

from engine_sdk.testing import engine  # noqa: F401 - a fixture; pytest.ini says where it is


def test_add_returns_the_sum(engine):  # noqa: F811
    import math_worker  # noqa: F401 - its register_worker() connects to the test's engine

    assert engine.call("math::add", {"a": 2, "b": 3})["c"] == 5
