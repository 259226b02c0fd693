"""
The functions of the live system.

Written by ``engine types --lang py``; it is overwritten when functions change.
"""
# ruff: noqa
# fmt: off

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Union, cast

if TYPE_CHECKING:
    from typing_extensions import NotRequired, Unpack

    from engine_sdk import CallOptions, Worker


ABPayload: TypeAlias = "Union[Literal[\"x\"], Literal[\"y\"], Literal[2], None]"


class ABNamePayloadTree(TypedDict):
    """A tree of numbers."""
    value: builtins.int
    """
    Of this node
    Default: 0
    """
    children: NotRequired[Sequence[ABNamePayloadTree]]


class ABNameResultTree(TypedDict):
    """A tree of numbers."""
    value: builtins.int
    """
    Of this node
    Default: 0
    """
    children: NotRequired[builtins.list[ABNameResultTree]]


class MathAddPayload(TypedDict):
    a: builtins.float
    """The first"""
    b: builtins.float


class MathAddResult(TypedDict):
    c: builtins.float


class MyShopPriceOfPayload(TypedDict):
    sku: builtins.str
    count: NotRequired[builtins.int]


class ShapesAreaPayloadOption1(TypedDict):
    kind: Literal["circle"]
    radius: builtins.float


ShapesAreaPayloadOption2 = TypedDict("ShapesAreaPayloadOption2", {
    "kind": "Literal[\"square\"]",
    "side-length": "NotRequired[builtins.float]",
    "class": "NotRequired[Union[builtins.str, None]]",
})


ShapesCornerPayload: TypeAlias = "Sequence[builtins.float]"


ShapesCornerResult: TypeAlias = "builtins.list[ShapesCornerResult]"


class ShapesListPayloadPage(TypedDict):
    size: NotRequired[builtins.int]


class ShapesListPayload(TypedDict):
    """Further keys: Any."""
    page: NotRequired[ShapesListPayloadPage]


class ShapesListResultItemOption1(TypedDict):
    kind: Literal["circle"]
    radius: builtins.float


def _request(function_id: str, payload: Any, options: Any) -> Any:
    return {"function_id": function_id, "payload": payload, **options}


class _F:
    """Functions below ````."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def f_(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Call ``::``."""
        return self._worker.trigger(_request("::", payload, options))

    async def f__async(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Call ``::``."""
        return await self._worker.trigger_async(_request("::", payload, options))


class _ABC:
    """Functions below ``c``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def d(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Union[builtins.str, None]:
        """Call ``a::b::c::d``."""
        return cast("Union[builtins.str, None]", self._worker.trigger(_request("a::b::c::d", payload, options)))

    async def d_async(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Union[builtins.str, None]:
        """Call ``a::b::c::d``."""
        return cast("Union[builtins.str, None]", await self._worker.trigger_async(_request("a::b::c::d", payload, options)))


class _AB:
    """Functions below ``b``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.c = _ABC(worker)

    def __call__(
        self, payload: ABPayload = None, **options: Unpack[CallOptions]
    ) -> builtins.int:
        """Call ``a::b``."""
        return cast("builtins.int", self._worker.trigger(_request("a::b", payload, options)))

    def name(
        self, payload: ABNamePayloadTree, **options: Unpack[CallOptions]
    ) -> ABNameResultTree:
        """
        Several lines,
        with */ and \"\"\" and \\ in them
        """
        return cast("ABNameResultTree", self._worker.trigger(_request("a::b::name", payload, options)))

    async def name_async(
        self, payload: ABNamePayloadTree, **options: Unpack[CallOptions]
    ) -> ABNameResultTree:
        """
        Several lines,
        with */ and \"\"\" and \\ in them
        """
        return cast("ABNameResultTree", await self._worker.trigger_async(_request("a::b::name", payload, options)))


class _A:
    """Functions below ``a``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.b = _AB(worker)

    async def b_async(
        self, payload: ABPayload = None, **options: Unpack[CallOptions]
    ) -> builtins.int:
        """Call ``a::b``."""
        return cast("builtins.int", await self._worker.trigger_async(_request("a::b", payload, options)))


class _Math:
    """Functions below ``math``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def add(
        self, payload: MathAddPayload, **options: Unpack[CallOptions]
    ) -> MathAddResult:
        """Add two numbers"""
        return cast("MathAddResult", self._worker.trigger(_request("math::add", payload, options)))

    async def add_async(
        self, payload: MathAddPayload, **options: Unpack[CallOptions]
    ) -> MathAddResult:
        """Add two numbers"""
        return cast("MathAddResult", await self._worker.trigger_async(_request("math::add", payload, options)))

    def untyped(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Call ``math::untyped``."""
        return self._worker.trigger(_request("math::untyped", payload, options))

    async def untyped_async(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Call ``math::untyped``."""
        return await self._worker.trigger_async(_request("math::untyped", payload, options))


class _MyShop:
    """Functions below ``my-shop``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def price_of(
        self, payload: MyShopPriceOfPayload, **options: Unpack[CallOptions]
    ) -> builtins.dict[builtins.str, builtins.float]:
        """Call ``my-shop::price.of``."""
        return cast("builtins.dict[builtins.str, builtins.float]", self._worker.trigger(_request("my-shop::price.of", payload, options)))

    async def price_of_async(
        self, payload: MyShopPriceOfPayload, **options: Unpack[CallOptions]
    ) -> builtins.dict[builtins.str, builtins.float]:
        """Call ``my-shop::price.of``."""
        return cast("builtins.dict[builtins.str, builtins.float]", await self._worker.trigger_async(_request("my-shop::price.of", payload, options)))


class _Odd:
    """Functions below ``odd``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def f_1st(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Call ``odd::1st``."""
        return self._worker.trigger(_request("odd::1st", payload, options))

    async def f_1st_async(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Call ``odd::1st``."""
        return await self._worker.trigger_async(_request("odd::1st", payload, options))

    def proto__(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> builtins.str:
        """Call ``odd::__proto__``."""
        return cast("builtins.str", self._worker.trigger(_request("odd::__proto__", payload, options)))

    async def proto___async(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> builtins.str:
        """Call ``odd::__proto__``."""
        return cast("builtins.str", await self._worker.trigger_async(_request("odd::__proto__", payload, options)))

    def class_(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> builtins.bool:
        """Call ``odd::class``."""
        return cast("builtins.bool", self._worker.trigger(_request("odd::class", payload, options)))

    async def class__async(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> builtins.bool:
        """Call ``odd::class``."""
        return cast("builtins.bool", await self._worker.trigger_async(_request("odd::class", payload, options)))

    def str(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> builtins.str:
        """Call ``odd::str``."""
        return cast("builtins.str", self._worker.trigger(_request("odd::str", payload, options)))

    async def str_async(
        self, payload: Any = None, **options: Unpack[CallOptions]
    ) -> builtins.str:
        """Call ``odd::str``."""
        return cast("builtins.str", await self._worker.trigger_async(_request("odd::str", payload, options)))


class _Shapes:
    """Functions below ``shapes``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def area(
        self, payload: Union[ShapesAreaPayloadOption1, ShapesAreaPayloadOption2], **options: Unpack[CallOptions]
    ) -> builtins.float:
        """Call ``shapes::area``."""
        return cast("builtins.float", self._worker.trigger(_request("shapes::area", payload, options)))

    async def area_async(
        self, payload: Union[ShapesAreaPayloadOption1, ShapesAreaPayloadOption2], **options: Unpack[CallOptions]
    ) -> builtins.float:
        """Call ``shapes::area``."""
        return cast("builtins.float", await self._worker.trigger_async(_request("shapes::area", payload, options)))

    def corner(
        self, payload: ShapesCornerPayload, **options: Unpack[CallOptions]
    ) -> ShapesCornerResult:
        """Call ``shapes::corner``."""
        return cast("ShapesCornerResult", self._worker.trigger(_request("shapes::corner", payload, options)))

    async def corner_async(
        self, payload: ShapesCornerPayload, **options: Unpack[CallOptions]
    ) -> ShapesCornerResult:
        """Call ``shapes::corner``."""
        return cast("ShapesCornerResult", await self._worker.trigger_async(_request("shapes::corner", payload, options)))

    def list(
        self, payload: Union[ShapesListPayload, Mapping[str, Any]], **options: Unpack[CallOptions]
    ) -> builtins.list[Union[ShapesListResultItemOption1, None]]:
        """Call ``shapes::list``."""
        return cast("builtins.list[Union[ShapesListResultItemOption1, None]]", self._worker.trigger(_request("shapes::list", payload, options)))

    async def list_async(
        self, payload: Union[ShapesListPayload, Mapping[str, Any]], **options: Unpack[CallOptions]
    ) -> builtins.list[Union[ShapesListResultItemOption1, None]]:
        """Call ``shapes::list``."""
        return cast("builtins.list[Union[ShapesListResultItemOption1, None]]", await self._worker.trigger_async(_request("shapes::list", payload, options)))


class Api:
    """The functions of the live system."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.f_ = _F(worker)
        self.a = _A(worker)
        self.math = _Math(worker)
        self.my_shop = _MyShop(worker)
        self.odd = _Odd(worker)
        self.shapes = _Shapes(worker)

    def publish(
        self, payload: Mapping[builtins.str, Any], **options: Unpack[CallOptions]
    ) -> None:
        """Call ``publish``."""
        return cast("None", self._worker.trigger(_request("publish", payload, options)))

    async def publish_async(
        self, payload: Mapping[builtins.str, Any], **options: Unpack[CallOptions]
    ) -> None:
        """Call ``publish``."""
        return cast("None", await self._worker.trigger_async(_request("publish", payload, options)))
