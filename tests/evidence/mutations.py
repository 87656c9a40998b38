"""Files as people really have them: cut, shuffled, recoded, coloured, translated, glued, inflated, broken. Seeded."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import samples

WEIRD = (
    "-1", "nan", "inf", "1e999", "-0.0", "٣٤٥", "９９", "²", "9" * 60, "9" * 5000, "0x1f", "1,5",
    "1.2.3", "", "N/A", "ERR!", "\x00", "%s%n",
    "true", "null", "{", "]", "-", "::", "NaN%", "1e-400", "+7", "0",
)  # fmt: skip
LOCAL = (
    ("size", "大小"), ("Active", "Aktiv"), ("Rate", "Débit"), ("GPU", "显卡"), ("Average", "Среднее"),
    ("sender", "送信側"), (".", ","),
    ("read", "读"), ("time", "Zeit"), ("Memory", "メモリ"),
)  # fmt: skip


def lines_of(text: str) -> list[str]:
    return text.split("\n")


def cut(text: str, rng: random.Random) -> str:
    start = rng.choice((0, 0, rng.randrange(len(text))))
    return text[start : rng.randrange(start, len(text)) + 1]


def shuffle(text: str, rng: random.Random) -> str:
    lines = lines_of(text)
    rng.shuffle(lines)
    return "\n".join(lines)


def drop(text: str, rng: random.Random) -> str:
    return "\n".join(line for line in lines_of(text) if rng.random() > 0.3)


def repeat(text: str, rng: random.Random) -> str:
    return "\n".join(line for line in lines_of(text) for _ in range(rng.choice((1, 1, 2, 5))))


def glue(text: str, rng: random.Random) -> str:
    return "".join(line + rng.choice(("\n", "\n", " ", "")) for line in lines_of(text))


def blank_lines(text: str, rng: random.Random) -> str:
    return "\n\n".join(lines_of(text))


def respace(text: str, rng: random.Random) -> str:
    return rng.choice((text.replace("  ", "\t"), text.replace("\t", " "), " ".join(text.split(" ")), text.replace("\n", " ")))


def quote(text: str, rng: random.Random) -> str:
    mark = rng.choice(
        ("> ", "    ", "0: ", "[1,0]<stdout>:", "2025-01-01T00:00:00.000Z stdout F ", "pod/job-0-abcde: ", "# ", "| ")
    )
    return "\n".join(mark + line for line in lines_of(text))


def noise_lines(text: str, rng: random.Random) -> str:
    noise = (
        "node1:77:77 [0] NCCL INFO Using network IB",
        "srun: warning",
        "^C",
        "Warning: Permanently added",
        "=" * 200,
        "日志",
    )
    return "\n".join(part for line in lines_of(text) for part in ((rng.choice(noise), line) if rng.random() < 0.2 else (line,)))


def other_numbers(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for _ in range(max(1, len(words) // 12)):
        at = rng.randrange(len(words))
        words[at] = rng.choice(WEIRD)
    return " ".join(words)


def other_characters(text: str, rng: random.Random) -> str:
    chars = list(text)
    for _ in range(max(1, len(chars) // 40)):
        chars[rng.randrange(len(chars))] = chr(rng.choice((rng.randrange(32, 127), rng.randrange(0, 0x2FF), 0x1F600, 0xFFFD)))
    return "".join(chars)


def colour(text: str, rng: random.Random) -> str:
    return "".join(
        f"\x1b[{rng.randrange(108)}m{word}\x1b[0m " if rng.random() < 0.3 else word + " " for word in text.split(" ")
    )


def translate(text: str, rng: random.Random) -> str:
    for old, new in rng.sample(LOCAL, 4):
        text = text.replace(old, new)
    return text


def mix(text: str, rng: random.Random) -> str:
    other = rng.choice(sorted(samples.ALL))
    return rng.choice(("", "日志如下:\n")) + text + "\n" + samples.ALL[other][1]


TEXT: tuple[Callable[[str, random.Random], str], ...] = (
    cut, shuffle, drop, repeat, glue, blank_lines, respace, quote, noise_lines,
    other_numbers, other_characters, colour, translate, mix,
)  # fmt: skip


def encode(text: str, rng: random.Random) -> bytes:
    """Bytes in one of the encodings and line ends that files come in, sometimes with a broken byte or a binary tail."""
    text = rng.choice((text, text, text.replace("\n", "\r\n"), text.replace("\n", "\r")))
    encoding = rng.choice(
        ("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "latin-1", "utf-32", "shift-jis")
    )
    data = text.encode(encoding, "replace")
    spoil = rng.random()
    if spoil < 0.08:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.randbytes(rng.randrange(1, 400)) + data[at:]
    elif spoil < 0.10:
        data = rng.randbytes(rng.randrange(1, 5000))
    elif spoil < 0.12:
        data = data[: rng.randrange(3)]
    return data


def mutant(seed: int) -> tuple[str, bytes]:
    """A name and the bytes of one broken file: one to three mutations of one sample, then an encoding."""
    rng = random.Random(seed)  # noqa: S311 (reproducible, not secret)
    name = sorted(samples.ALL)[seed % len(samples.ALL)]
    text = samples.ALL[name][1]
    done = []
    for mutation in rng.sample(TEXT, rng.choice((1, 1, 2, 3))):
        text = mutation(text, rng) or "\n"
        done.append(mutation.__name__)
    return f"{name}-{seed}-{'-'.join(done)}", encode(text, rng)


def huge(seed: int, size: int = 50_000_000) -> bytes:
    """A file of `size` bytes: a sample again and again, one endless line, or nothing but line ends."""
    rng = random.Random(seed)  # noqa: S311 (reproducible, not secret)
    name = sorted(samples.ALL)[seed % len(samples.ALL)]
    text = samples.ALL[name][1]
    kind = seed // len(samples.ALL) % 6
    unit = (
        text, text.replace("\n", " "), "\n", "a\n",
        text[: rng.randrange(20, len(text))] + "([{\"' 0123456789" * 3, "=:|-[]<>()\t 0.0,"
    )[kind]  # fmt: skip
    return (text.encode() + unit.encode() * (size // len(unit.encode()) + 1))[:size]


COUNT = int(os.environ.get("ADVISOR_MUTANTS", "300"))
