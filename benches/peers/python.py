"""XGrammar and outlines-core on the inputs that snaffle-peers wrote, beside its figures.

usage: python.py OUT [NAME...]    OUT holds peers.json and NAME.inputs.json

Prints one table per vocabulary and adds the figures to peers.json. A library runs in a process of
its own, so that a schema that it cannot do in time costs only that schema. Times include the call from Python; what
a call that does nothing takes is printed.
"""

import json
import multiprocessing
import pathlib
import statistics
import sys
import time
import types

SECONDS_PER_SCHEMA = 20
CALLS_WITHOUT_WORK = 100_000


def stand_in_for_torch():
    """XGrammar imports torch for the tensors of its interface; numpy's arrays do as well here."""
    try:
        import torch  # noqa: F401
        return ()
    except ImportError:
        pass

    class Anything(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Anything(f"{self.__name__}.{name}")

        def __call__(self, *arguments, **named):
            return self

        def __or__(self, other):
            return self

        __ror__ = __or__

    names = ("torch", "torch.utils", "torch.utils.cpp_extension", "transformers", "triton")
    for name in names:
        sys.modules[name] = Anything(name)
    for name in ("PreTrainedTokenizerBase", "PreTrainedTokenizerFast", "LogitsProcessor"):
        setattr(sys.modules["transformers"], name, type(name, (), {}))
    return names


class XGrammar:
    name = "XGrammar"
    one_of = 10

    def __init__(self, inputs):
        import numpy
        import tvm_ffi  # noqa: F401  # before the stand-in, which it would take for the real one

        names = stand_in_for_torch()
        import xgrammar

        for name in names:
            del sys.modules[name]

        self.xgrammar = xgrammar
        tokens = [b"" if token is None else bytes.fromhex(token) for token in inputs["tokens"]]
        self.info = xgrammar.TokenizerInfo(
            tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[inputs["end"]]
        )
        self.bitmask = numpy.zeros((1, (len(tokens) + 31) // 32), dtype=numpy.int32)
        self.words = self.bitmask[0]
        self.forget()

    def forget(self):
        self.compiler = self.xgrammar.GrammarCompiler(self.info, max_threads=1)

    def start(self, schema):
        return self.compiler.compile_json_schema(
            json.dumps(schema),
            any_whitespace=False,
            separators=(", ", ": "),
            strict_mode=False,
        )

    def held(self, start):
        return start.memory_size_bytes

    def run(self, start):
        matcher = self.xgrammar.GrammarMatcher(start)
        fill, bitmask = matcher.fill_next_token_bitmask, self.bitmask
        return lambda: fill(bitmask), self.allowed, matcher.accept_token

    def allowed(self, token):
        return bool((int(self.words[token >> 5]) >> (token & 31)) & 1)


class Outlines:
    name = "outlines-core"
    one_of = 100

    def __init__(self, inputs):
        import numpy
        import outlines_core

        self.core = outlines_core
        words = {}
        for token, text in enumerate(inputs["tokens"]):
            if text and token != inputs["end"]:
                words.setdefault(bytes.fromhex(text), []).append(token)
        self.vocabulary = outlines_core.Vocabulary(inputs["end"], words)
        self.words = numpy.zeros((len(inputs["tokens"]) + 31) // 32, dtype=numpy.int32)

    def forget(self):
        pass

    def start(self, schema):
        from outlines_core.json_schema import build_regex_from_schema

        regex = build_regex_from_schema(json.dumps(schema), whitespace_pattern="[ ]?")
        return self.core.Index(regex, self.vocabulary)

    def held(self, start):
        return None

    def run(self, start):
        guide = self.core.Guide(start)
        words, write = self.words, guide.write_mask_into
        place, count, size = words.ctypes.data, words.size, words.itemsize

        def accept(token):
            guide.advance(token, return_tokens=False)
            return True

        return lambda: write(place, count, size), self.allowed, accept

    def allowed(self, token):
        return bool((int(self.words[token >> 5]) >> (token & 31)) & 1)


def walk(peer, start, tokens, times):
    mask, allowed, accept = peer.run(start)
    clock = time.perf_counter
    for at, token in enumerate(tokens):
        began = clock()
        mask()
        times.append(clock() - began)
        if not allowed(token) or not accept(token):
            raise ValueError(f"token {at} is not allowed")


def first_seen(peer, case):
    """Compiling and all masks of the first instance, in seconds; and bytes held."""
    began = time.perf_counter()
    start = peer.start(case["schema"])
    walk(peer, start, case["tokens"], [])
    return time.perf_counter() - began, peer.held(start)


def known(peer, case):
    start = peer.start(case["schema"])
    walk(peer, start, case["tokens"], [])
    times = []
    walk(peer, start, case["tokens"], times)
    return times


def compile_turn(peer, turn):
    """What compiling one turn takes; it stays for the turns that have the same schema."""
    if getattr(peer, "last", None) is None or peer.last[0] != turn["schema"]:
        began = time.perf_counter()
        start = peer.start(turn["schema"])
        peer.last = (turn["schema"], start)
        return time.perf_counter() - began, peer.held(start)
    return None


def turn(peer, turn):
    times = []
    walk(peer, peer.last[1], turn["tokens"], times)
    return times


def forget(peer, _):
    peer.forget()


def work(kind, path, connection):
    with open(path) as file:
        inputs = json.load(file)
    began = time.perf_counter()
    peer = kind(inputs)
    connection.send(time.perf_counter() - began)
    while True:
        function, group, at = connection.recv()
        try:
            answer = function(peer, None if group is None else inputs[group][at])
        except Exception as error:  # what a library raises is its own affair
            answer = error if isinstance(error, ValueError) else ValueError(str(error))
        connection.send(answer)


class Worker:
    """A library in a process of its own, begun anew after what it could not do in time."""

    def __init__(self, kind, path):
        self.kind, self.path = kind, path
        self.begin()

    def begin(self):
        """Begins the process; where the library cannot even be set up, that is the end."""
        self.here, there = multiprocessing.Pipe()
        self.process = multiprocessing.Process(
            target=work, args=(self.kind, self.path, there), daemon=True
        )
        self.process.start()
        there.close()
        self.set_up = self.here.recv()

    def ask(self, function, group=None, at=None, seconds=SECONDS_PER_SCHEMA):
        """The answer; a ValueError where the library refuses, a TimeoutError where it is late."""
        self.here.send((function, group, at))
        try:
            if self.here.poll(seconds):
                return self.here.recv()
        except EOFError:
            pass
        self.process.kill()
        self.process.join()
        self.begin()
        return TimeoutError()


def quantile(times, part):
    ordered = sorted(times)
    rank = -(-int(len(ordered) * part * 1000) // 1000)
    return ordered[max(0, min(len(ordered), rank) - 1)] if ordered else None


def progress(name, what, done, total):
    print(f"\r{name}: {what} {done}/{total}   ", end="", file=sys.stderr, flush=True)


def measure(kind, path, inputs):
    worker = Worker(kind, path)
    figures = {"set-up per vocabulary, ms": worker.set_up * 1e3}
    masks, compiling, held, refused, late = [], [], [], 0, 0
    total, calls, failed = len(inputs["turns"]), 0, None
    for at, case in enumerate(inputs["turns"]):
        progress(kind.name, "turns", at + 1, total)
        if case["schema"] == failed:
            continue
        answer = worker.ask(compile_turn, "turns", at)
        if isinstance(answer, Exception):
            failed = case["schema"]
            continue
        if answer is not None:
            compiling.append(answer[0])
            held.append(answer[1])
        answer = worker.ask(turn, "turns", at)
        if isinstance(answer, list):
            calls += 1
            masks.extend(answer)
    counted = [size for size in held if size is not None]
    figures |= {
        "session: calls": calls,
        "session: masks": len(masks),
        "session: all masks, ms": sum(masks) * 1e3 if calls == total else None,
        "session: mask mean, µs": scaled(statistics.fmean(masks) if masks else None, 1e6),
        "session: mask p50, µs": scaled(quantile(masks, 0.5), 1e6),
        "session: mask p99, µs": scaled(quantile(masks, 0.99), 1e6),
        "session: compiles": len(compiling),
        "session: compiling, ms": sum(compiling) * 1e3 if calls == total else None,
        "session: compile mean, ms": scaled(statistics.fmean(compiling) if compiling else None, 1e3),
        # What it keeps for the schemas of the session, by its own account.
        "session: held at its end, MiB": sum(counted) / 2**20 if counted else None,
    }
    worker.ask(forget)
    chosen = range(0, len(inputs["cases"]), kind.one_of)
    cold, warm = [], []
    for times, again in ((cold, True), (warm, False)):
        for count, at in enumerate(chosen):
            progress(kind.name, "cold" if again else "warm", count + 1, len(chosen))
            if again:
                worker.ask(forget)
            answer = worker.ask(first_seen, "cases", at)
            if isinstance(answer, tuple):
                times.append(answer[0])
            elif again:
                refused += not isinstance(answer, TimeoutError)
                late += isinstance(answer, TimeoutError)
    again = []
    for at in chosen:
        answer = worker.ask(known, "cases", at)
        if isinstance(answer, list):
            again.extend(answer)
    worker.process.kill()
    figures |= {
        "known states: masks": len(again),
        "known states: mask p50, µs": scaled(quantile(again, 0.5), 1e6),
        "known states: mask p99, µs": scaled(quantile(again, 0.99), 1e6),
        "first seen: schemas": len(cold),
        "first seen: not taken": refused,
        "first seen: too late": late,
        "first seen, cold: p50, ms": scaled(quantile(cold, 0.5), 1e3),
        "first seen, cold: p99, ms": scaled(quantile(cold, 0.99), 1e3),
        "first seen, cold: mean, ms": scaled(statistics.fmean(cold) if cold else None, 1e3),
        "first seen, warm: p50, ms": scaled(quantile(warm, 0.5), 1e3),
        "first seen, warm: p99, ms": scaled(quantile(warm, 0.99), 1e3),
        "first seen, warm: mean, ms": scaled(statistics.fmean(warm) if warm else None, 1e3),
    }
    print(file=sys.stderr)
    return figures


def scaled(time_, factor):
    return None if time_ is None else time_ * factor


def table(peers):
    names = list(peers)
    rows = []
    for name in names:
        rows += [row for row in peers[name] if row not in rows]
    print(" " * 32 + "".join(f"{name:>26}" for name in names))
    for row in rows:
        own = peers[names[0]].get(row)
        cells = []
        for column, name in enumerate(names):
            value = peers[name].get(row)
            if value is None:
                cells.append("–")
            elif column and own:
                cells.append(f"{value:.3f} ({value / own:>7.2f}×)")
            else:
                cells.append(f"{value:.3f}")
        print(f"{row:32}" + "".join(f"{cell:>26}" for cell in cells))
    print()


def main():
    out = pathlib.Path(sys.argv[1])
    wanted = [kind for kind in (XGrammar, Outlines) if kind.name in sys.argv[2:] or not sys.argv[2:]]
    began = time.perf_counter()
    for _ in range(CALLS_WITHOUT_WORK):
        (lambda: None)()
    per_call = (time.perf_counter() - began) / CALLS_WITHOUT_WORK
    print(f"a call from Python that does nothing: {per_call * 1e6:.2f} µs\n")
    report = json.loads((out / "peers.json").read_text())
    for entry in report:
        path = out / f"{entry['vocabulary']}.inputs.json"
        inputs = json.loads(path.read_text())
        for kind in wanted:
            entry["peers"][kind.name] = measure(kind, path, inputs)
        print(f"{entry['vocabulary']}: {entry['tokens']} tokens, {len(inputs['cases'])} schemas")
        table(entry["peers"])
        text = json.dumps(report, indent=2, ensure_ascii=False)
        (out / "peers.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
