"""Run forged releases through the verifier: `python -m benchmarks.forgeries [forge] [alarms] [adult] [--seeds 3]`.

``forge``: each kind of forgery, on three methods and some seeds. The forger has the program, the private table, the
ledger and the signer's key, makes all exports and digests again, and signs the release with that key. Kinds of the
group ``files`` skip the new digests and signature, so that forgeries caught by digest or signature are counted
separately.

``alarms``: honest releases over all methods, units and options; no check may fail.

``adult``: time and memory of the verifier on releases of Adult.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import tempfile
from pathlib import Path

from benchmarks.forgeries import (
    KINDS,
    METHODS,
    Case,
    checked,
    signer,
)
from benchmarks.forgeries.honest import adult, alarms
from espalier.core.ledger.ledger import Ledger


def forge(seeds: int, only: str = "") -> bool:
    """Print, for each kind, how many forgeries were caught and by which checks; return whether 95 % of the kinds are
    caught.
    """
    caught: dict[str, list[list[int] | None]] = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as place:
        ledger = Ledger(Path(place) / "ledger.db", create=True)
        for method, seed in itertools.product(METHODS, range(seeds)):
            case = Case(method, seed, signer(), ledger)
            honest = checked(case.honest.files, case.key, ledger.to_json())
            print(f"{method} {seed}: honest release {'holds' if not honest else f'FAILS {honest}'}", flush=True)
            for one_kind in KINDS:
                if only and only not in one_kind.name:
                    continue
                try:
                    made = one_kind.make(case)
                except Exception as error:  # the other kinds still run
                    print(f"ERROR {method} {seed} {one_kind.name}: {type(error).__name__}: {error}", flush=True)
                    continue
                if made is None:
                    caught[one_kind.name].append(None)
                    continue
                files, export = made if isinstance(made, tuple) else (made, None)
                caught[one_kind.name].append(checked(files, case.key, export))
    full = missed = 0
    for one_kind in KINDS:
        runs = [r for r in caught[one_kind.name] if r is not None]
        good = sum(bool(r) for r in runs)
        by = ", ".join(map(str, sorted({c for r in runs for c in r}))) or "none"
        whole = bool(runs) and good == len(runs)
        full += one_kind.detectable and whole
        missed += one_kind.detectable and bool(runs) and not whole
        mark = "" if one_kind.detectable else f"  (not detectable: {one_kind.why})"
        print(f"{one_kind.group:7} {one_kind.name:50} {good:2} of {len(runs):2}  checks {by}{mark}")
    print(f"{len(KINDS)} kinds; of {full + missed} detectable ones {full} are caught in every run")
    return full >= 0.95 * (full + missed)


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["forge", "alarms"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--only", default="")
    opt = parser.parse_args()
    good = True
    if "forge" in opt.parts:
        good &= forge(opt.seeds, opt.only)
    if "adult" in opt.parts:
        good &= adult()
    if "alarms" in opt.parts:
        good &= alarms(opt.times)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
