"""What the assets are given from outside: the results store."""

from assets.builder import StoreResource

RESOURCES = {"store": StoreResource()}
