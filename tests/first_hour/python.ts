/**
 * The first hour of a developer in Python: a worker of their own with the wheel, one that the
 * engine starts, its test, an edit, and a typed client.
 *
 * @module
 */
import { type Newcomer, type Packages, readmeBlock } from "./newcomer.ts";

const TYPED = `
from dataclasses import dataclass

from engine_sdk import InitOptions, register_worker


@dataclass
class Order:
    sku: str
    count: int


def total(order: Order) -> int:
    """Price of an order in cents."""
    return 1299 * order.count


worker = register_worker(options=InitOptions(worker_name="orders"))
worker.register_function("orders::total", total)
print("registered", flush=True)
`;

const CLIENT = `
from api import Api
from engine_sdk import register_worker

worker = register_worker()
print(Api(worker).orders.total({"sku": "A1", "count": 2}))
worker.shutdown()
`;

/** The fixture comes with the package; nothing is imported for it. */
const TEST = `
def test_the_total_is_price_times_count(engine):
    import orders  # noqa: F401

    assert engine.call("orders::total", {"sku": "A1", "count": 3}) == 3897
`;

/** All steps. */
export async function pythonHour(user: Newcomer, { wheel }: Packages): Promise<void> {
  await user.installsEngine();
  await user.startsProject();
  await user.runs("python3 -m venv .venv && .venv/bin/pip install --quiet pytest mypy " + wheel);

  const first = await readmeBlock("python");
  await user.writes("math.worker.py", first.replace("ws://127.0.0.1:49134", user.url));
  await user.starts(".venv/bin/python math.worker.py", "");
  await user.runsUntil("engine trigger math::add a=2 b=3", '{ "c": 5 }');

  await user.writes("orders.py", TYPED);
  await user.starts(".venv/bin/python orders.py", "registered");
  await user.runsUntil("engine trigger orders::total sku=A1 count=2", "2598");
  await user.runs("engine trigger orders::total sku=A1 count=many || true", {
    expects: "invalid_payload",
  });
  await user.runs("engine trigger orders::total --help", { expects: "Price of an order in cents" });
  await user.runs("engine types --lang py --out api.py orders::");
  await user.writes("client.py", CLIENT);
  await user.runs(".venv/bin/python client.py", { expects: "2598\n" });
  await user.runs(".venv/bin/mypy --strict client.py orders.py", { expects: "Success" });

  await user.writes("test_orders.py", TEST);
  await user.runs(".venv/bin/python -m pytest -q test_orders.py", { expects: "1 passed" });

  await user.runs("engine create --template python-worker --directory workers/mail");
  await user.runs("engine worker add ./workers/mail --isolation process", { expects: "ready" });
  await user.runs("engine trigger mail::hello name=Ada", { expects: "Hello, Ada!" });
  await user.runs("cd workers/mail && ../../.venv/bin/python -m pytest -q", {
    expects: "1 passed",
  });
  await user.runs("sed -i 's/Hello/Good morning/' workers/mail/worker.py");
  await user.runsUntil("engine trigger mail::hello name=Ada", "Good morning, Ada!");
  await user.runs("engine worker list", { expects: /mail +ready/ });
}
