"""Counts primes, the slow way, and says how far it is."""

from math import isqrt

from engine_sdk import InitOptions, Logger, register_worker

PARTS = 20  # of a job; after each, the pages that follow it see its progress

worker = register_worker(options=InitOptions(worker_name="prime-worker"))
logger = Logger()
jobs = worker.stream("jobs").group("primes")


def is_prime(number):
    """Try every odd divisor."""
    if number < 3 or number % 2 == 0:
        return number == 2
    return all(number % divisor for divisor in range(3, isqrt(number) + 1, 2))


def count(payload):
    """
    Count the primes below a number.

    A queue delivers at least once: a job whose worker died is given out again. Its item says how
    far it was, so it goes on from there.
    """
    job_id, below = payload["id"], payload["below"]
    job = jobs.get(job_id) or {"done": 0, "primes": 0}
    done, primes = job["done"], job["primes"]
    logger.info("counting", {"below": below, "from": done})
    while done < below:
        end = min(done + below // PARTS + 1, below)
        primes += sum(map(is_prime, range(done, end)))
        done = end
        progress = {"below": below, "done": done, "primes": primes}
        jobs.update(job_id, [{"type": "merge", "value": progress}])
    return {"primes": primes}


worker.register_function(
    "primes::count",
    count,
    description="Counts the primes below a number; a job of the queue primes",
    request_format={
        "type": "object",
        "required": ["id", "below"],
        "properties": {"id": {"type": "string"}, "below": {"type": "integer", "minimum": 2}},
    },
)
