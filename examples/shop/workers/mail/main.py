"""Sends mails: jobs of the queue `mail`."""

from typing import TypedDict

from engine_sdk import Logger, register_worker

worker = register_worker()
logger = Logger()


class Mail(TypedDict):
    """What a job has as its payload."""

    to: str
    text: str


def send(mail: Mail) -> None:
    """Send a mail; here it is only stored. An error repeats the job, five times in all."""
    payload = {"scope": "sent", "key": mail["to"], "value": mail["text"]}
    worker.trigger({"function_id": "state::set", "payload": payload})
    logger.info("sent", {"to": mail["to"]})


worker.register_function("mail::send", send)
