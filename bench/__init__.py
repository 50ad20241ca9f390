"""Speed and memory beside the obvious alternative: `python -m bench` measures, `bench/results.json` keeps."""
