"""Counts the words and characters of {"text": …} on standard input."""

import json
import sys

text = json.load(sys.stdin)["text"]
print(json.dumps({"words": len(text.split()), "characters": len(text)}))
