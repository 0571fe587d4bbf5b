"""What memory and time follow from: the dimensions of a model, as ``pricing/models.toml`` or a config gives them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tenfold.prices.models import Strict


def _number(value: object) -> object:
    # TOML is read with exact decimals; sizes and speeds are no money
    return float(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]


class Layers(Strict):
    """A group of alike layers: how many, and how far back they attend (0: to the start)."""

    count: int = Field(gt=0)
    window: int = Field(default=0, ge=0)
    kind: Literal["full", "sliding", "linear"] = "full"
    kv_numbers: int = Field(default=0, ge=0)
    """Numbers kept a token and layer, where these layers differ from the model's."""
    state_bytes: int = Field(default=0, ge=0)
    """Bytes a sequence and layer that do not grow: the state of linear attention."""


class ModelSpec(Strict):
    """One ``[[model]]`` table: what memory and time follow from."""

    name: str = Field(min_length=1)
    aliases: list[str] = Field(default=[])
    params: Number = Field(gt=0)
    active_params: Number | None = Field(default=None, gt=0)
    layers: list[Layers] = Field(min_length=1)
    hidden: int = Field(gt=0)
    q_heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    """Size of a head; where keys and values differ (MLA), their mean, by which attention is multiplied."""
    kv_latent: int = Field(default=0, ge=0)
    """MLA: numbers kept a token and layer (latent and rotary part) in place of keys and values."""
    experts: int = Field(default=0, ge=0)
    experts_per_token: int = Field(default=0, ge=0)
    expert_params: Number = Field(default=0, ge=0)
    """Parameters in routed experts, all of them together."""
    max_context: int = Field(default=0, ge=0)
    source: str = Field(min_length=1)
    checked: date
    note: str = ""

    @model_validator(mode="after")
    def _experts_are_whole(self) -> Self:
        if self.experts and not (0 < self.experts_per_token <= self.experts and 0 < self.expert_params < self.params):
            raise ValueError("experts need experts_per_token (at most experts) and expert_params (below params)")
        return self

    @property
    def layer_count(self) -> int:
        """Layers of every kind."""
        return sum(one.count for one in self.layers)

    @property
    def active(self) -> float:
        """Parameters that one token is multiplied with."""
        return self.active_params or self.params

    @property
    def is_moe(self) -> bool:
        """Whether a token is multiplied with a part of the parameters only."""
        return self.experts > 0

    @property
    def kv_numbers(self) -> int:
        """Numbers that a layer keeps a token: keys and values of every KV head, or MLA's latent."""
        return self.kv_latent or 2 * self.kv_heads * self.head_dim
