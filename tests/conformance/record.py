"""For people: record where the supported minors answer differently.

    python -m tests.conformance.record [--answers FILE]

Runs all checks on each real minor and writes `other_minor.json`. Run it after a change of the checks or of the pinned minors.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tests.conformance.checks import all_checks
from tests.conformance.suite import real_answers
from tests.conformance.verdict import RECORDED, differing_parts, is_broken
from tests.kubernetes.recipe import DEFAULT_KUBE, KUBES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record")
    parser.add_argument("--answers", type=Path, help="also write the newest minor's answers to this file")
    given = parser.parse_args()
    checks = all_checks()
    by_minor = [asyncio.run(real_answers(kube, checks)) for kube in KUBES]
    newest = by_minor[KUBES.index(DEFAULT_KUBE)]
    broken = sorted({number for answers in by_minor for number, answer in answers.items() if is_broken(answer)})
    parts = {one.number: differing_parts([answers[one.number] for answers in by_minor]) for one in checks}
    differing = {number: part for number, part in parts.items() if part}
    if given.answers:
        given.answers.write_text(json.dumps(newest, indent=1, sort_keys=True))
    if broken:
        sys.exit(f"nothing is recorded: {', '.join(broken)} could not be carried out")
    RECORDED.write_text(json.dumps(differing, indent=1, sort_keys=True) + "\n")
    print(f"{len(newest)} answers; the minors differ in {len(differing)}: {', '.join(differing)}")


if __name__ == "__main__":
    main()
