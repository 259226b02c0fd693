"""Adds numbers; once the state block is uncommented, it also keeps a running total."""

from engine_sdk import InitOptions, Logger, register_worker

worker = register_worker(options=InitOptions(worker_name="math-worker"))
logger = Logger()


def add(payload):
    """Add the numbers a and b."""
    a = payload.get("a", 0)
    b = payload.get("b", 0)
    result = {"c": a + b}
    logger.info("adding", {"a": a, "b": b})

    # state: begin (uncomment down to "state: end" after: engine worker add engine-state)
    # place = {"scope": "math", "key": "running_total"}
    # total = worker.trigger({"function_id": "state::get", "payload": place}) or 0
    # total += result["c"]
    # worker.trigger({"function_id": "state::set", "payload": {**place, "value": total}})
    # result["running_total"] = total
    # state: end

    return result


NUMBER = {"type": "number", "default": 0}

worker.register_function(
    "math::add",
    add,
    description="Adds two numbers",
    request_format={"type": "object", "properties": {"a": NUMBER, "b": NUMBER}},
    response_format={
        "type": "object",
        "properties": {"c": {"type": "number", "description": "The sum of a and b"}},
    },
)
