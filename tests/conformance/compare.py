"""For people: run the checks on two servers and print what differs.

    python -m tests.conformance.compare                                the embedded server against a real one, both started
    python -m tests.conformance.compare --only 12,30-35 --kubeconfig F a running server against a real one
    python -m tests.conformance.compare --real-answers FILE            the real answers are kept in FILE from run to run

Ends with 1 when something differs; what `accepted.py` argues is left out of the answers.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from applecart.clock import SystemClock
from applecart.embedded.trust.pki import Authority, load_or_create_authority
from tests.conformance.checks import Check, all_checks
from tests.conformance.servers import CONTROLLERS, KubeconfigServer
from tests.conformance.suite import answers_of, chosen, real_answers, start_embedded
from tests.conformance.verdict import difference, is_equal, recorded_answers
from tests.kubernetes.recipe import DEFAULT_KUBE


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.compare", description="Compare a server with a real one."
    )
    parser.add_argument("--only", default="", help="numbers of checks, such as 12,30-35,54b")
    parser.add_argument(
        "--kubeconfig", type=Path, help="of a running server to compare; without it the embedded one is started"
    )
    parser.add_argument("--controllers", action="store_true", help="the running server has controllers beside it")
    parser.add_argument("--authority", type=Path, help="folder with ca.crt and ca.key of the running server, to be other users")
    parser.add_argument("--url", default="", help="reach the server of the kubeconfig at another address")
    parser.add_argument("--kube", default=DEFAULT_KUBE, help="the real minor to compare with")
    parser.add_argument(
        "--real-answers", type=Path, help="read the real answers from this file; missing ones are asked and added"
    )
    parser.add_argument("--quiet", action="store_true", help="one line per check, no diffs")
    return parser.parse_args()


def wanted_answers(checks: list[Check], kube: str, kept: Path | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    missing = [one for one in checks if one.number not in found]
    if missing:
        found |= asyncio.run(real_answers(kube, missing))
        if kept:
            kept.write_text(json.dumps(found, indent=1, sort_keys=True))
    return found


def _authority(folder: Path | None) -> Authority | None:
    if folder is None:
        return None
    if not (folder / "ca.key").exists():
        sys.exit(f"{folder} has no ca.key; without --authority other users are impersonated")
    return load_or_create_authority(folder, "ca", SystemClock().now())


async def got_answers(checks: list[Check], given: argparse.Namespace) -> dict[str, Any]:
    if given.kubeconfig:
        running = KubeconfigServer(given.kubeconfig, [CONTROLLERS] if given.controllers else [], _authority(given.authority))
        running.url = given.url or running.url
        return await answers_of(running, checks)
    found: dict[str, Any] = {}
    for has_controllers in (False, True):
        some = [one for one in checks if (CONTROLLERS in one.needs) == has_controllers]
        if some:
            with TemporaryDirectory(prefix="conformance-") as folder:
                server = await start_embedded(Path(folder), has_controllers=has_controllers)
                try:
                    found |= await answers_of(server, some)
                finally:
                    await server.stop()
    return found


def main() -> int:
    given = arguments()
    checks = chosen(all_checks(), given.only)
    wanted = wanted_answers(checks, given.kube, given.real_answers)
    started_s = time.monotonic()
    got = asyncio.run(got_answers(checks, given))
    took_s = time.monotonic() - started_s
    recorded = recorded_answers()
    equal = different = 0
    for one in checks:
        if one.number not in got:
            print(f"{one.number:>4} not run    {one.title} (needs {', '.join(sorted(one.needs))})")
        elif is_equal(one.number, wanted[one.number], got[one.number], recorded):
            equal += 1
            print(f"{one.number:>4} equal      {one.title}")
        else:
            different += 1
            print(f"{one.number:>4} DIFFERENT  {one.title}")
            if not given.quiet:
                print(difference(wanted[one.number], got[one.number], ("real", "this server")), end="\n\n")
    print(f"{equal} equal, {different} different, {len(checks) - equal - different} not run, in {took_s:.1f} s")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
