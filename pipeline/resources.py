"""What the assets are given from outside: the results store, and an account where the system has none."""

from assets.builder import StoreResource
from pipeline.studies import StudyError
from pipeline.surroundings import supply_account
from warehouse.store import Store, StoreError

try:
    supply_account(Store.from_environment().root / "home")
except StoreError as error:
    raise StudyError(str(error)) from None

RESOURCES = {"store": StoreResource()}
