"""What a provider's own storage costs: capacity by class, requests, egress; the usual price where none of theirs is known."""

from __future__ import annotations

import functools

from advisor import catalog
from advisor.budget.interval import Driver
from advisor.budget.money import ExchangeRate, convert, currency_of
from advisor.budget.offers import providers
from advisor.units import Quantity

#: A price of the provider's own list moves little; a stand-in has the range of data/constants/budget.csv.
OWN_LIST = (0.95, 1.1)
FEES = {"egress_price": "egress_price", "put_price": "put_price", "get_price": "get_price"}


@functools.lru_cache(maxsize=256)
def _products(provider: str, day: str) -> tuple[catalog.StorageProduct, ...]:
    name = providers().get(provider, {}).get("storage_provider")
    return tuple(one for one in catalog.storage_products(day) if name and one.provider == name)


def _usable(price: Quantity | None, currency: str, rate: ExchangeRate | None) -> Quantity | None:
    if price is None or (currency_of(price) != currency and rate is None):
        return None
    return convert(price, currency, rate)


def capacity_price(
    provider: str, storage_class: str, currency: str, rate: ExchangeRate | None, day: str
) -> tuple[Quantity, str, Driver]:
    """Price per bytes and month of a class at a provider (its first, standard product of it), the source and its range."""
    for product in _products(provider, day):
        price = _usable(product.capacity_price, currency, rate) if product.storage_class == storage_class else None
        if price is not None:
            return price, product.source, Driver(f"storage_price:{storage_class}", *OWN_LIST)
    return _stand_in(f"storage_{storage_class.replace('-', '_')}", f"storage_price:{storage_class}", currency)


def fee(provider: str, name: str, currency: str, rate: ExchangeRate | None, day: str) -> tuple[Quantity, str, Driver]:
    """A fee of FEES at a provider (of its first object storage product that states it), the source and its range."""
    for product in _products(provider, day):
        price = _usable(getattr(product, FEES[name]), currency, rate) if product.storage_class == "object" else None
        if price is not None:
            return price, product.source, Driver(name, *OWN_LIST)
    return _stand_in(name, name, currency)


def _stand_in(key: str, code: str, currency: str) -> tuple[Quantity, str, Driver]:
    row = catalog.constant_row(f"budget.{key}_{currency.lower()}")
    low, expected, high = (one.magnitude for one in catalog.constant_range(f"budget.{key}_{currency.lower()}"))
    return catalog.constant(f"budget.{key}_{currency.lower()}"), row["source"], Driver.of(code, expected, low, high)
