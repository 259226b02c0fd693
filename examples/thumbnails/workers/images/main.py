"""Stores images, makes thumbnails of them, and sends both."""

import shutil
import uuid
from pathlib import Path

from engine_sdk import EngineError, register_worker
from PIL import Image, UnidentifiedImageError

SIZE = (200, 200)
DATA = Path("data")
DATA.mkdir(exist_ok=True)

worker = register_worker()
images = worker.stream("images").group("all")


def upload(request):
    """Stream the body to a file, however large it is, and have a thumbnail made."""
    image_id = uuid.uuid4().hex
    with (DATA / image_id).open("wb") as file:
        shutil.copyfileobj(request["request_body"].as_file(), file)
    images.set(image_id, {"state": "waiting"})
    worker.enqueue("images::shrink", {"id": image_id}, queue="thumbnails", id=image_id)
    return {"status_code": 202, "body": {"id": image_id}}


def shrink(job):
    """Make the thumbnail. A job may come twice; the second time changes nothing."""
    image_id = job["id"]
    try:
        with Image.open(DATA / image_id) as image:
            image.thumbnail(SIZE)
            image.convert("RGB").save(DATA / f"{image_id}.jpg")
            width, height = image.size
    except (UnidentifiedImageError, Image.DecompressionBombError):
        images.set(image_id, {"state": "not an image"})  # Another attempt would not help.
        return
    images.set(image_id, {"state": "ready", "width": width, "height": height})


def thumbnail(request):
    """Send a thumbnail as a stream."""
    image_id = request["path_params"]["id"]
    if (images.get(image_id) or {}).get("state") != "ready":
        raise EngineError("no_thumbnail", "There is no such thumbnail", {"status_code": 404})
    file = (DATA / f"{image_id}.jpg").open("rb")
    parts = iter(lambda: file.read(65536), b"")
    return {"headers": {"content-type": "image/jpeg"}, "body": parts}


worker.register_function("images::upload", upload, description="Stores an image")
worker.register_function("images::shrink", shrink, description="Makes the thumbnail of an image")
worker.register_function("images::thumbnail", thumbnail, description="Returns a thumbnail")
for method, path, function_id in [
    ("POST", "/images", "images::upload"),
    ("GET", "/images/:id", "images::thumbnail"),
]:
    config = {"http_method": method, "api_path": path}
    worker.register_trigger({"type": "http", "function_id": function_id, "config": config})
