"""Makes a report of the sales of each day, at night, and serves it."""

import csv
import io
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from engine_sdk import EngineError, Logger, register_worker

ZONE = ZoneInfo("Europe/Berlin")

worker = register_worker()
logger = Logger()
settings = worker.configuration(
    "report",
    schema={
        "type": "object",
        "required": ["least_cents"],
        "properties": {"least_cents": {"type": "integer", "minimum": 0}},
    },
    initial_value={"least_cents": 0},
)


def state(function_id, **payload):
    """Call a function of the state."""
    return worker.trigger({"function_id": f"state::{function_id}", "payload": payload})


def sales_of(day):
    """Read the sales of a day, in pages; their keys begin with it."""
    cursor = {}
    while True:
        page = state("list_entries", scope="sales", prefix=f"{day}/", limit=500, **cursor)
        yield from (entry["value"] for entry in page["entries"])
        if not page.get("cursor"):
            return
        cursor = {"cursor": page["cursor"]}


def make(payload):
    """Make the report of the day before. It replaces one of the same day, so it may run twice."""
    night = datetime.fromisoformat(payload["scheduled_time"]).astimezone(ZONE)
    day = (night - timedelta(days=1)).date().isoformat()
    totals: dict[str, int] = {}
    for sale in sales_of(day):
        totals[sale["sku"]] = totals.get(sale["sku"], 0) + sale["cents"]
    least = settings.value["least_cents"]
    rows = sorted(row for row in totals.items() if row[1] >= least)
    state("set", scope="reports", key=day, value=rows)
    logger.info("report made", {"day": day, "articles": len(rows)})
    return {"day": day, "articles": len(rows)}


def show(request):
    """Send a report as CSV."""
    rows = state("get", scope="reports", key=request["path_params"]["day"])
    if rows is None:
        raise EngineError("no_report", "There is no report of that day", {"status_code": 404})
    text = io.StringIO()
    csv.writer(text).writerows([("article", "cents"), *rows])
    return {"headers": {"content-type": "text/csv"}, "body": text.getvalue()}


worker.register_function("report::make", make, description="Makes the report of the day before")
worker.register_function("report::show", show, description="Returns the report of a day as CSV")
worker.register_trigger(
    {
        "type": "cron",
        "function_id": "report::make",
        # Each night at two; after a night without the engine, the last one is made up for.
        "config": {"expression": "0 0 2 * * *", "timezone": ZONE.key, "catch_up": "last"},
    }
)
worker.register_trigger(
    {"type": "http", "function_id": "report::show", "config": {"api_path": "/reports/:day"}}
)
