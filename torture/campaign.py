"""Many cases in worker processes: a crash or a hang of one is a finding, and not the end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torture.case import KINDS, Address, Problem

ROOT = Path(__file__).parents[1]
LIMIT = 90.0
"""Seconds after which a case hangs."""
STARTING = 120.0
"""Seconds more for the first case of a worker, which imports everything."""
LIFE = 300
"""Cases of one worker process, after which another takes over."""
MINIMISING = 60.0
"""Seconds for the search for a smaller case."""


@dataclass(slots=True)
class Worker:
    """A process that runs cases, started anew when one has ended it."""

    limit: float = LIMIT
    process: subprocess.Popen[str] | None = None
    cases: int = 0
    errors: Any = field(default_factory=tempfile.TemporaryFile)

    def ask(self, line: str) -> dict[str, Any]:
        """The reply of the worker; a crash and a hang are replies, too."""
        if self.process is None or self.cases >= LIFE:
            self.close()
            self._start()
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        limit = self.limit + (STARTING if self.cases == 0 else 0.0)
        self.cases += 1
        self.errors.seek(0)
        self.errors.truncate()
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        reply = self.process.stdout.readline() if ready else ""
        if reply:
            found: dict[str, Any] = json.loads(reply)
            return found
        if not ready:
            self.close()
            return Problem("hang", f"no answer in {self.limit:g} s", "hang")._asdict()
        code = self.process.wait()
        self.close()
        return Problem("crash", *self._last_words(code))._asdict()

    def _last_words(self, code: int) -> tuple[str, str]:
        """Text and key of a crash."""
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").splitlines()
        own = [line.strip() for line in lines if "/src/hylift/" in line]
        return f"{name}: {' '.join(lines)[:600]}", f"{name} {own[0] if own else ''}"

    def _start(self) -> None:
        self.cases = 0
        path = os.pathsep.join([str(ROOT), str(ROOT / "src"), str(ROOT / "tests")])
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "torture.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def end(self) -> None:
        self.close()
        self.errors.close()


@dataclass(slots=True)
class Campaign:
    """Cases of all targets in turn, each with an equal share of the time."""

    targets: tuple[str, ...]
    seed: int
    seconds: float
    most: int | None = None
    """Cases of each target; None is as many as there is time for."""
    spent: dict[str, float] = field(default_factory=dict)
    number: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    found: dict[tuple[str, str], list[Address]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, workers: int) -> int:
        """The number of findings, which are printed as they are found."""
        end = time.monotonic() + self.seconds
        threads = [threading.Thread(target=self._work, args=(end,)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._report()
        return sum(self.counts.values())

    def _next(self) -> Address | None:
        with self.lock:
            left = [t for t in self.targets if self.most is None or self.number[t] < self.most]
            if not left:
                return None
            target = min(left, key=lambda name: self.spent.get(name, 0.0))
            number = self.number[target]
            self.number[target] += 1
            self.spent[target] = self.spent.get(target, 0.0) + 1e-3
            return Address(target, self.seed + number)

    def _work(self, end: float) -> None:
        worker = Worker()
        while time.monotonic() < end and (address := self._next()) is not None:
            began = time.monotonic()
            reply = worker.ask(str(address))
            with self.lock:
                self.spent[address.target] += time.monotonic() - began
            if "kind" in reply:
                self._record(worker, address, Problem(**reply))
        worker.end()

    def _record(self, worker: Worker, address: Address, problem: Problem) -> None:
        with self.lock:
            self.counts[problem.kind] += 1
            known = self.found.setdefault((problem.kind, problem.key or str(address)), [])
            known.append(address)
        if len(known) > 1:
            return
        smallest, problem = minimised(worker, address, problem)
        described = worker.ask(f"?{smallest}").get("case", "")
        with self.lock:
            print(f"{problem.kind.upper()} {smallest}\n  {problem.text}", flush=True)
            print("\n".join(f"    {line}" for line in str(described).splitlines()), flush=True)

    def _report(self) -> None:
        print("\ncases: " + ", ".join(f"{self.number[name]} {name}" for name in self.targets))
        for name, addresses in self.found.items():
            if len(addresses) > 1:
                shown = ", ".join(map(str, addresses[:8]))
                print(f"{len(addresses)} times {name[0]}, {name[1]}: {shown}")
        print("findings: " + ", ".join(f"{self.counts[kind]} {kind}" for kind in KINDS))


def minimised(worker: Worker, address: Address, problem: Problem) -> tuple[Address, Problem]:
    """The smallest case found in a while that shows the same problem."""
    end = time.monotonic() + MINIMISING
    while True:
        place, before = 0, address
        while time.monotonic() < end:
            reply = worker.ask(str(address.cut(place)))
            if "missing" in reply:
                break
            if reply.get("kind") == problem.kind and reply.get("key") == problem.key:
                address, problem = address.cut(place), Problem(**reply)
            else:
                place += 1
        if address == before or time.monotonic() >= end:
            return address, problem


def replayed(texts: list[str]) -> Iterator[tuple[str, Problem | None]]:
    """Each case and the problem that it shows."""
    worker = Worker()
    for text in texts:
        reply = worker.ask(text)
        described = worker.ask(f"?{text}").get("case", "")
        yield str(described), Problem(**reply) if "kind" in reply else None
    worker.end()
