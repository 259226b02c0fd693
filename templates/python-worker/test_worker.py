"""A test without an engine: pip install pytest websockets; python -m pytest."""

from engine_sdk.testing import engine  # noqa: F401 - a fixture; pytest.ini says where it is


def test_hello_greets_a_person_by_name(engine):  # noqa: F811
    import worker  # noqa: F401 - its register_worker() connects to the test's engine

    assert engine.call("{{name}}::hello", {"name": "Ann"}) == {"greeting": "Hello, Ann!"}
