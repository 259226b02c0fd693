"""A worker with one function."""

from engine_sdk import InitOptions, Logger, register_worker

worker = register_worker(options=InitOptions(worker_name="{{name}}"))
logger = Logger()


def hello(payload):
    """Greet a person by name."""
    name = payload.get("name", "world")
    logger.info("greeting", {"name": name})
    return {"greeting": f"Hello, {name}!"}


worker.register_function(
    "{{name}}::hello",
    hello,
    description="Greets a person by name",
    request_format={
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Name of the person"}},
    },
)
