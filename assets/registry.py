"""Every stage of a replicate, found in this package, inputs first. A new stage is a module here that says `X = Stage(`.

The module has the stage's name. Only such modules are imported, so that finding them loads neither Dagster nor torch.
No key covers this module.
"""

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from assets.stage import Stage

DECLARES = re.compile(r"^[A-Z][A-Z0-9_]*(: Stage)? = Stage\(", re.MULTILINE)


class StageError(ValueError):
    """Stages that do not fit together. One sentence with the stage and the remedy."""


def find(package: str = "assets", folder: Path = Path(__file__).parent) -> tuple[Stage, ...]:
    """The stages that the modules in `folder` declare, one each. Raises StageError on one of another name."""
    found = []
    for path in sorted(folder.glob("*.py")):
        if DECLARES.search(path.read_text(encoding="utf-8")):
            module = import_module(f"{package}.{path.stem}")
            stages = [each for each in vars(module).values() if isinstance(each, Stage)]
            if [stage.name for stage in stages] != [path.stem]:
                named = ", ".join(stage.name for stage in stages)
                raise StageError(f"{path}: declares {named}; one module declares one stage, of the module's own name")
            found += stages
    return inputs_first(found)


def inputs_first(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """`stages` in an order in which inputs come first; of those that could be next the one with the least `order`.

    Equal orders go by name. Raises StageError on an input that is no stage, and on stages that need each other.
    """
    waiting = {stage.name: stage for stage in sorted(stages, key=lambda stage: (stage.order, stage.name))}
    for stage in waiting.values():
        if unknown := [name for name in stage.inputs if name not in waiting]:
            raise StageError(f"stage {stage.name} needs {unknown[0]}, which is no stage; they are {', '.join(waiting)}")
    ordered: dict[str, Stage] = {}
    while waiting:
        ready = next((stage for stage in waiting.values() if set(stage.inputs) <= set(ordered)), None)
        if ready is None:
            raise StageError(f"the stages {', '.join(waiting)} need each other in a circle; cut it")
        ordered[ready.name] = waiting.pop(ready.name)
    return tuple(ordered.values())


STAGES = find()
