"""Receives webhooks, and handles each delivery once."""

import base64
import hashlib
import hmac
import os

from engine_sdk import EngineError, register_worker

SECRET = os.environ["WEBHOOK_SECRET"].encode()

worker = register_worker()


def receive(request):
    """Answer as soon as the delivery is on disk: senders wait for a few seconds only."""
    body = base64.b64decode(request["raw_body_base64"])
    expected = "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    signature = request["headers"].get("x-hub-signature-256", "")
    if not hmac.compare_digest(signature.encode(), expected.encode()):
        raise EngineError("bad_signature", "The signature is wrong", {"status_code": 401})
    delivery = request["headers"].get("x-github-delivery")
    if not delivery:
        raise EngineError("no_delivery", "x-github-delivery is missing", {"status_code": 400})
    # Senders repeat a delivery that they got no answer to: a job with the same id is not added.
    worker.enqueue("webhook::handle", request["body"], queue="deliveries", id=delivery)
    return {"status_code": 202, "body": {"accepted": delivery}}


def handle(event):
    """Store how many stars a repository has."""
    repository = event["repository"]
    stars = {"stars": repository["stargazers_count"]}
    payload = {"scope": "repositories", "key": repository["full_name"], "value": stars}
    worker.trigger({"function_id": "state::set", "payload": payload})


worker.register_function("webhook::receive", receive, description="Receives a webhook")
worker.register_function("webhook::handle", handle, description="Handles one delivery")
worker.register_trigger(
    {
        "type": "http",
        "function_id": "webhook::receive",
        "config": {"api_path": "/webhook", "http_method": "POST", "raw_body": True},
    }
)
