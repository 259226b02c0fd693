"""
Type hints as shapes: the JSON Schema of a hint, and the conversion of JSON values by it.

Known are what JSON has, ``Literal``, enums, unions, lists, tuples, dicts, TypedDicts, dataclasses
and pydantic models, nested and recursive. Any other hint accepts every value as it is, so that a
handler may be annotated with whatever helps its readers.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Union

FAULTS_MAX: Final = 20
"""Faults listed for one value, as the engine lists them."""

TEXT_CHARS_MAX: Final = 500
"""Longest path, and longest message, of a fault."""

Schema = dict[str, Any]
"""JSON Schema; empty for what accepts every value."""

Direction = Literal["in", "out"]
"""``in``: a payload becomes what the handler takes; ``out``: a result becomes JSON."""

_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.MutableSequence)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    tuple: "an array",
    dict: "an object",
}


class Faults(list[tuple[str, str]]):
    """What is wrong with a value: paths (JSON Pointers) and messages."""

    def add(self, path: str, message: str) -> None:
        """Report one fault."""
        if len(self) < FAULTS_MAX:
            self.append((path[:TEXT_CHARS_MAX], message[:TEXT_CHARS_MAX]))


Convert = Callable[[Any, str, Faults, Direction], Any]
"""Converts a value at a path. Reports what does not fit; its outcome is then of no use."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """A hint, as far as it is known; ``schema`` is empty for one that accepts every value."""

    schema: Schema
    convert: Convert

    @property
    def accepts_all(self) -> bool:
        """Whether every value fits, unchanged."""
        return self is ANYTHING


ANYTHING: Final = Shape({}, lambda value, _path, _faults, _direction: value)


def shape_of(hint: Any) -> Shape:
    """Return the shape of a hint; ``schema`` is whole, with its ``$defs``."""
    shaper = _Shaper()
    shape = shaper.shape(hint)
    if not shaper.definitions:
        return shape
    return Shape({**shape.schema, "$defs": shaper.definitions}, shape.convert)


class _Shaper:
    """Reads one hint with all hints in it."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        """Schemas of types that contain themselves, and of models."""
        self._open: dict[Any, str] = {}
        """Types that are being read, with the names of their definitions."""
        self._recursive: set[str] = set()
        self._done: dict[Any, Shape] = {}

    def shape(self, hint: Any) -> Shape:
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if hint is None or hint is type(None):
            return _plain("null", type(None))
        if hint in (bool, int, float, str):
            return _PLAIN[hint]
        if origin is Literal:
            return _choice(list(args), list(args))
        if origin in (Union, types.UnionType):
            return self._union(args)
        if origin is typing.Annotated:
            return self._annotated(args)
        if getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly"):
            return self.shape(args[0])
        if (origin or hint) in _LISTS:
            return self._sequence(origin or hint, args)
        if (origin or hint) in _DICTS:
            return self._mapping(args)
        if (named := getattr(hint, "__supertype__", None)) is not None:
            return self.shape(named)  # NewType
        if type(hint).__name__ == "TypeAliasType":
            return self._named(hint, lambda: self.shape(hint.__value__))
        return self._class(hint) if isinstance(hint, type) else ANYTHING

    def _class(self, hint: Any) -> Shape:
        if hasattr(hint, "model_validate") and hasattr(hint, "model_json_schema"):
            return self._model(hint)
        if issubclass(hint, enum.Enum):
            return _choice([member.value for member in hint], list(hint))
        if issubclass(hint, dict) and hasattr(hint, "__total__"):
            return self._named(hint, lambda: self._typed_dict(hint))
        if dataclasses.is_dataclass(hint):
            return self._named(hint, lambda: self._dataclass(hint))
        return ANYTHING

    def _named(self, hint: Any, read: Callable[[], Shape]) -> Shape:
        """Read a type once; one that contains itself becomes a definition."""
        if hint in self._done:
            return self._done[hint]
        if hint in self._open:
            name = self._open[hint]
            self._recursive.add(name)
            late = lambda *given: self._done[hint].convert(*given)  # noqa: E731
            return Shape({"$ref": f"#/$defs/{name}"}, late)
        name = self._free_name(hint.__name__)
        self._open[hint] = name
        shape = read()
        if name in self._recursive:
            self.definitions[name] = shape.schema
            shape = Shape({"$ref": f"#/$defs/{name}"}, shape.convert)
        self._done[hint] = shape
        del self._open[hint]
        return shape

    def _free_name(self, name: str) -> str:
        taken = {*self.definitions, *self._open.values()}
        names = (name if i == 1 else f"{name}{i}" for i in range(1, len(taken) + 2))
        return next(each for each in names if each not in taken)

    def _annotated(self, args: tuple[Any, ...]) -> Shape:
        shape = self.shape(args[0])
        text = next((each for each in args[1:] if isinstance(each, str)), None)
        if text is None or shape.accepts_all:
            return shape
        return Shape({**shape.schema, "description": text}, shape.convert)

    def _union(self, args: tuple[Any, ...]) -> Shape:
        shapes = [self.shape(each) for each in args]
        if any(shape.accepts_all for shape in shapes):
            return ANYTHING
        wanted = [shape for shape in shapes if shape.schema != {"type": "null"}]

        def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
            for shape in shapes:
                found = Faults()
                converted = shape.convert(value, path, found, direction)
                if not found:
                    return converted
            if len(wanted) == 1:
                return wanted[0].convert(value, path, faults, direction)
            return faults.add(path, f"must fit one of {len(shapes)} types, is {_kind(value)}")

        return Shape({"anyOf": [shape.schema for shape in shapes]}, convert)

    def _sequence(self, origin: Any, args: tuple[Any, ...]) -> Shape:
        if origin is tuple and args and args[-1] is not Ellipsis:
            return self._tuple([self.shape(each) for each in args])
        item = self.shape(args[0]) if args else ANYTHING

        def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
            if not isinstance(value, (list, tuple)):
                return faults.add(path, f"must be an array, is {_kind(value)}")
            items = [
                item.convert(each, f"{path}/{i}", faults, direction) for i, each in enumerate(value)
            ]
            return tuple(items) if origin is tuple and direction == "in" else items

        return Shape({"type": "array", **({"items": item.schema} if item.schema else {})}, convert)

    def _tuple(self, shapes: list[Shape]) -> Shape:
        count = len(shapes)

        def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
            if not isinstance(value, (list, tuple)) or len(value) != count:
                return faults.add(path, f"must be an array of {count} items")
            items = [
                shape.convert(each, f"{path}/{i}", faults, direction)
                for i, (shape, each) in enumerate(zip(shapes, value, strict=True))
            ]
            return tuple(items) if direction == "in" else items

        prefix = [shape.schema for shape in shapes]
        bounds = {"minItems": count, "maxItems": count}
        return Shape({"type": "array", "prefixItems": prefix, **bounds}, convert)

    def _mapping(self, args: tuple[Any, ...]) -> Shape:
        item = self.shape(args[1]) if len(args) == 2 else ANYTHING

        def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
            if not isinstance(value, Mapping):
                return faults.add(path, f"must be an object, is {_kind(value)}")
            return {
                key: item.convert(each, _at(path, key), faults, direction)
                for key, each in value.items()
            }

        more = {"additionalProperties": item.schema} if item.schema else {}
        return Shape({"type": "object", **more}, convert)

    def _typed_dict(self, hint: Any) -> Shape:
        hints = typing.get_type_hints(hint, include_extras=True)
        required = {
            name
            for name, each in hints.items()
            if _is_required(each, name in hint.__required_keys__)
        }
        members = {name: self.shape(each) for name, each in hints.items()}

        def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
            if not isinstance(value, Mapping):
                return faults.add(path, f"must be an object, is {_kind(value)}")
            converted = dict(value)
            _convert_members(members, required, converted, path, faults, direction)
            return converted

        return Shape(_object_schema(hint, members, required), convert)

    def _dataclass(self, hint: Any) -> Shape:
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = [field for field in dataclasses.fields(hint) if field.init]
        members = {field.name: self.shape(hints[field.name]) for field in fields}
        required = {field.name for field in fields if _has_no_default(field)}

        def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
            if direction == "out" and isinstance(value, hint):
                value = {field.name: getattr(value, field.name) for field in fields}
            if not isinstance(value, Mapping):
                return faults.add(path, f"must be an object, is {_kind(value)}")
            given = {name: value[name] for name in members if name in value}
            found = Faults()
            _convert_members(members, required, given, path, found, direction)
            for fault in found:
                faults.add(*fault)
            if found or direction == "out":
                return given
            try:
                return hint(**given)
            except (TypeError, ValueError) as error:  # Of its __post_init__.
                return faults.add(path, str(error))

        return Shape(_object_schema(hint, members, required), convert)

    def _model(self, hint: Any) -> Shape:
        """Read a pydantic model, which converts and describes itself."""
        schema = dict(hint.model_json_schema(ref_template="#/$defs/{model}"))
        self.definitions.update(schema.pop("$defs", {}))
        schema.pop("title", None)

        def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
            try:
                model = hint.model_validate(value)
                return model if direction == "in" else model.model_dump(mode="json", by_alias=True)
            except ValueError as error:
                details: Any = getattr(error, "errors", list)
                for each in details() or [{"loc": (), "msg": str(error)}]:
                    place = path
                    for part in each["loc"]:
                        place = _at(place, part)
                    faults.add(place, each["msg"])
                return None

        return Shape(schema, convert)


def _convert_members(
    members: Mapping[str, Shape],
    required: set[str],
    value: dict[str, Any],
    path: str,
    faults: Faults,
    direction: Direction,
) -> None:
    """Convert the members of an object in place."""
    for name, shape in members.items():
        if name in value:
            value[name] = shape.convert(value[name], _at(path, name), faults, direction)
        elif name in required:
            faults.add(path, f"must have the member {name}")


def _object_schema(hint: Any, members: Mapping[str, Shape], required: set[str]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {name: shape.schema for name, shape in members.items()},
    }
    if required:
        schema["required"] = [name for name in members if name in required]
    # A dataclass without a docstring has its signature as one.
    text = hint.__doc__
    if text and not text.startswith(f"{hint.__name__}("):
        schema["description"] = summary(text)
    return schema


def summary(text: str) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join(text.strip().split("\n\n")[0].split())


def _is_required(hint: Any, by_class: bool) -> bool:
    """Whether a TypedDict demands a key; hints that were strings are not seen by its class."""
    name = getattr(typing.get_origin(hint), "_name", None)
    return by_class if name not in ("Required", "NotRequired") else name == "Required"


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _plain(name: str, kind: type) -> Shape:
    def convert(value: Any, path: str, faults: Faults, _direction: Direction) -> Any:
        if type(value) is kind:
            return value
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # JSON does not tell 2 from 2.0.
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if (kind is float and is_number) or (kind is str and isinstance(value, str)):
            return value
        if kind is int and is_number and isinstance(value, int):
            return value  # An IntEnum, for example.
        return faults.add(path, f"must be {_KINDS[kind]}, is {_kind(value)}")

    return Shape({"type": name}, convert)


_PLAIN: Final[dict[Any, Shape]] = {
    bool: _plain("boolean", bool),
    int: _plain("integer", int),
    float: _plain("number", float),
    str: _plain("string", str),
}


def _choice(values: list[Any], wanted: list[Any]) -> Shape:
    """Return the shape of a few values; ``wanted`` has what the handler gets for each."""
    allowed = ", ".join(repr(value) for value in values)
    # With its type, since 1, 1.0 and True are equal.
    by_value = {(type(value), value): each for value, each in zip(values, wanted, strict=True)}

    def convert(value: Any, path: str, faults: Faults, direction: Direction) -> Any:
        plain = value.value if isinstance(value, enum.Enum) and direction == "out" else value
        is_known = plain.__hash__ is not None and (type(plain), plain) in by_value
        if not is_known:
            return faults.add(path, f"must be one of {allowed}")
        return plain if direction == "out" else by_value[type(plain), plain]

    return Shape({"enum": values}, convert)


def _at(path: str, part: object) -> str:
    """Return the JSON Pointer of a member."""
    return f"{path}/{str(part).replace('~', '~0').replace('/', '~1')}"


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)
