"""Run as a script: `contention_driver.py <store> <rounds> <me>`: publish a shared and an own key in every round.

Prints a JSON list of the shared keys' digests as this process got them.
"""

import json
import random
import sys
from pathlib import Path

from warehouse.store import Store


def main(root: str, rounds: str, me: str) -> None:
    store, rng = Store(root), random.Random(me)
    seen = []
    for n in range(int(rounds)):
        shared, own = f"{n:064x}", f"{int(me) + 1:032x}{n:032x}"
        for key in rng.sample([shared, own], 2):
            artifact = store.get("stage", key) or publish(store, key, me)
            assert artifact.file("data").read_text().endswith(f"{key}\n")
            if key == shared:
                seen.append(artifact.manifest["digest"])
        if n % 5 == 0:
            store.clean()
    print(json.dumps(seen))


def publish(store: Store, key: str, me: str):
    def write(folder: Path) -> None:
        (folder / "data").write_text(f"written by {me}\n{key}\n")

    return store.publish("stage", key, write, spec={}, inputs={}, provenance={"writer": me}, summary={})


if __name__ == "__main__":
    main(*sys.argv[1:])
