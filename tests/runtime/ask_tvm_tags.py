"""Writes tvm_tags.json: all tags of real TVM, in groups of the same attributes.

Run it with the oracle's Python: `.venv-oracle/bin/python tests/runtime/ask_tvm_tags.py`.
"""

import json
from pathlib import Path

import tvm
from tvm.target import Target


def plain(config):
    """Attributes as JSON, without those that TVM derives from the name of the processor."""
    if hasattr(config, "items"):
        attrs = {str(k): plain(v) for k, v in config.items() if k != "tag" and v is not None}
        return {k: attrs[k] for k in sorted(attrs) if not k.startswith("feature.")}
    if isinstance(config, (str, int)):
        return str(config) if isinstance(config, str) else config
    return [plain(item) for item in config]


groups = {}
for tag in sorted(tvm.target.list_tags()):
    groups.setdefault(json.dumps(plain(Target(tag).export())), []).append(tag)
rows = ",\n".join(json.dumps([json.loads(attrs), " ".join(tags)]) for attrs, tags in groups.items())
Path(__file__).with_name("tvm_tags.json").write_text(f"[\n{rows}\n]\n")
