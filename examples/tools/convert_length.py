"""Converts {"value": …, "from": …, "to": …}; with --list prints the units, one a line."""

import json
import sys

METRES = {"m": 1.0, "km": 1000.0, "mile": 1609.344, "foot": 0.3048, "inch": 0.0254}

if sys.argv[1:] == ["--list"]:
    print("\n".join(METRES))
else:
    asked = json.load(sys.stdin)
    value = asked["value"] * METRES[asked["from"]] / METRES[asked["to"]]
    print(json.dumps({"value": round(value, 6), "unit": asked["to"]}))
