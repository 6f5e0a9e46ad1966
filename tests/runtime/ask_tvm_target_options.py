"""Asks real TVM which options its kinds of targets take, and with which types of values. Run by a
Python that has TVM:

    python tests/runtime/ask_tvm_target_options.py > tests/runtime/tvm_target_options.json
"""

import json
import re

from tvm.target import Target

VALUES = {"int": 5, "str": "x", "list": ["x"]}
PLACES = {"kind", "host", "tag"}
"""What is no option, but says which target is meant."""


def options(kind: str) -> dict[str, list[str]]:
    """The types that each option of a kind takes: none where TVM asks absent hardware."""
    try:
        Target({"kind": kind, "no such option": 1})
    except ValueError as error:
        names = re.findall(r"'([^']+)'", str(error).split("Known options:")[1])
        return {name: types(kind, name) for name in names if name not in PLACES}
    raise AssertionError(kind)


def types(kind: str, name: str) -> list[str]:
    """The types that one option takes."""
    return [text for text, value in VALUES.items() if takes(kind, name, value)]


def takes(kind: str, name: str, value: object) -> bool:
    try:
        Target({"kind": kind, name: value})
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    rows = [f'"{kind}": {json.dumps(options(kind))}' for kind in Target.list_kinds()]
    print("{" + ",\n".join(rows) + "}")
