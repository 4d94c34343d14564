"""Files broken in every way that a slip, a bad disk or a bad program breaks them."""

from __future__ import annotations

import random
from collections.abc import Callable

MARKOV = b"""MARKOV
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.4 0.6

4
 0.9 0.1
 0.2 0.8

6
 0.3 0.3 0.4
 0.1 0.2 0.7
"""

BAYES = b"""BAYES
4
2 3 1 2
4
1 0
2 0 1
2 1 2
4 0 1 2 3
2 .25 .75
6 1 0 0 0 .5 .5
3 1 1 1
12 .5 .5 .1 .9 1 0 0 1 .3 .7 1e-3 .999
"""

CONSTANTS = b"MARKOV 2 2 2 4 0 0 2 1 0 1 1 1 2.5 1 1e-300 4 0 3 3 0 2 1e300 1e-300"

MODELS = (MARKOV, BAYES, CONSTANTS, b"MARKOV\n1\n1\n0\n", b"markov\r\n2\r\n2 5\r\n0\r\n")

EVIDENCE = (b"1\n0 1\n", b"1\n2\n0 1\n2 2\n", b"2 1 0 2 1", b"0\n", b"", b"3 0 0 1 1 2 2")

QUERIES = (b"2 0 2\n", b"1\n1\n", b"0", b"3 2 1 0")

NUMBERS = (
    b"-1 0 1 2 3 7 60 61 65 1000 1000000 1000001 2147483648 1000000000000 9007199254740993 "
    b"18446744073709551616 1e12 1e308 1e400 -1e400 1e-320 -0 -0.0 0.5 1.0000000001 nan inf -inf "
    b"NaN infinity 1_000 0x10 1,5 1-2 1.2.3 + - . e 1e \xd9\xa3 \xef\xbb\xbf \xff \x00 MARKOV"
).split()

ENTRIES = b"0 0 0 0.0 1 1e308 1.7e308 5e-324 1e-300 0.1 .5 5. 123456789".split()
"""Numbers that any table may hold."""


class Mutator:
    """Makes broken copies of good files, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ways: tuple[Callable[[bytearray], bytes], ...] = (
            self.flip_bits,
            self.flip_bits,
            self.delete,
            self.insert,
            self.repeat,
            self.truncate,
            self.swap_words,
            self.change_words,
            self.change_words,
            self.drop_word,
            self.change_digits,
            self.change_entries,
            self.change_entries,
        )

    def mutated(self, originals: tuple[bytes, ...]) -> bytes:
        """One of the originals, after one to three mutations."""
        content = self.rng.choice(originals)
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            content = self.rng.choice(self.ways)(bytearray(content))
        return content

    def flip_bits(self, content: bytearray) -> bytes:
        for _ in range(self.rng.choice((1, 1, 3))):
            if content:
                content[self.rng.randrange(len(content))] ^= 1 << self.rng.randrange(8)
        return bytes(content)

    def delete(self, content: bytearray) -> bytes:
        start, stop = self._piece(content)
        del content[start:stop]
        return bytes(content)

    def insert(self, content: bytearray) -> bytes:
        at = self.rng.randint(0, len(content))
        content[at:at] = self.rng.randbytes(self.rng.randint(1, 4))
        return bytes(content)

    def repeat(self, content: bytearray) -> bytes:
        start, stop = self._piece(content)
        content[stop:stop] = content[start:stop]
        return bytes(content)

    def truncate(self, content: bytearray) -> bytes:
        return bytes(content[: self.rng.randint(0, len(content))])

    def swap_words(self, content: bytearray) -> bytes:
        words = content.split()
        if len(words) > 1:
            a, b = self.rng.sample(range(len(words)), 2)
            words[a], words[b] = words[b], words[a]
        return b" ".join(words)

    def change_words(self, content: bytearray) -> bytes:
        words = content.split()
        for _ in range(self.rng.choice((1, 1, 2))):
            if words:
                words[self.rng.randrange(len(words))] = bytearray(self.rng.choice(NUMBERS))
        return b" ".join(words)

    def drop_word(self, content: bytearray) -> bytes:
        words = content.split()
        if words:
            words.pop(self.rng.randrange(len(words)))
        return b"\n".join(words)

    def change_digits(self, content: bytearray) -> bytes:
        digits = [at for at, letter in enumerate(content) if 48 <= letter < 58]
        for _ in range(self.rng.choice((1, 1, 2))):
            if digits:
                content[self.rng.choice(digits)] = 48 + self.rng.randrange(10)
        return bytes(content)

    def change_entries(self, content: bytearray) -> bytes:
        """Changes numbers near the end, where the tables are, to others that tables may hold."""
        words = content.split()
        for _ in range(self.rng.choice((1, 2, 4))):
            if words:
                at = self.rng.randint(len(words) // 2, len(words) - 1)
                words[at] = bytearray(self.rng.choice(ENTRIES))
        return b" ".join(words)

    def _piece(self, content: bytearray) -> tuple[int, int]:
        start = self.rng.randint(0, len(content))
        return start, min(len(content), start + self.rng.randint(1, 12))
