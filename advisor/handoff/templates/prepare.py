"""Turns train.jsonl (one {"text": "..."} a line, or {"messages": [...]}) into tokens.bin: run it once, on one machine.

python prepare.py MODEL train.jsonl tokens.bin
"""

from __future__ import annotations

import json
import sys

import numpy as np
from transformers import AutoTokenizer


def main() -> None:
    model, source, target = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(model)
    count = 0
    with open(source, encoding="utf-8") as lines, open(target, "wb") as out:
        for line in lines:
            row = json.loads(line)
            if "messages" in row:
                ids = tokenizer.apply_chat_template(row["messages"], tokenize=True, return_dict=True)["input_ids"]
            else:
                ids = [*tokenizer(row["text"])["input_ids"], tokenizer.eos_token_id]
            np.asarray(ids, dtype="<u4").tofile(out)
            count += len(ids)
    print(f"{count} tokens")


if __name__ == "__main__":
    main()
