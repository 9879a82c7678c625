"""Tart's command line: which options each verb takes, and what it answers to those it does not know.

Pure. What is refused here ends with exit code 64 and a usage text, as Tart's argument parser does.
"""

from collections.abc import Sequence

import msgspec

from applecart.sim.tart.refusals import usage


class Verb(msgspec.Struct, frozen=True):
    names: tuple[int, int]  # fewest and most names
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    is_command: bool = False  # whatever follows the first name is somebody else's command


class Arguments(msgspec.Struct, frozen=True):
    verb: str
    names: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    values: dict[str, list[str]] = {}
    wants_help: bool = False

    def value(self, option: str, default: str = "") -> str:
        return self.values.get(option, [default])[-1]

    def number(self, option: str, default: float | None = None) -> float | None:
        if option not in self.values:
            return default
        return int(self.value(option))


MANY = 1000
_PULLING = frozenset({"--concurrency"})
_RUN_FLAGS = (
    frozenset({"--no-graphics", "--graphics", "--vnc", "--vnc-experimental", "--recovery", "--nested", "--suspendable"})
    | {"--serial", "--no-audio", "--no-clipboard", "--no-trackpad", "--no-pointer", "--no-keyboard", "--capture-system-keys"}
    | {"--net-softnet", "--net-host"}
)
_RUN_VALUES = frozenset({"--dir", "--disk", "--root-disk-opts", "--rosetta", "--serial-path"}) | {
    "--net-bridged",
    "--net-softnet-allow",
    "--net-softnet-block",
    "--net-softnet-expose",
}
VERBS: dict[str, Verb] = {
    "clone": Verb((2, 2), frozenset({"--insecure"}), _PULLING | {"--prune-limit"}),
    "create": Verb((1, 1), frozenset({"--linux"}), frozenset({"--from-ipsw", "--disk-size", "--disk-format"})),
    "delete": Verb((1, MANY)),
    "exec": Verb((2, MANY), frozenset({"-i", "-t", "-it", "-ti"}), is_command=True),
    "fqn": Verb((1, 1)),
    "get": Verb((1, 1), values=frozenset({"--format"})),
    "ip": Verb((1, 1), values=frozenset({"--wait", "--resolver"})),
    "list": Verb((0, 0), frozenset({"-q", "--quiet"}), frozenset({"--source", "--format"})),
    "login": Verb((1, 1), frozenset({"--password-stdin", "--insecure", "--no-validate"}), frozenset({"--username"})),
    "logout": Verb((1, 1)),
    "prune": Verb((0, 0), frozenset({"--gc"}), frozenset({"--entries", "--older-than", "--space-budget", "--cache-budget"})),
    "pull": Verb((1, 1), frozenset({"--insecure", "--deduplicate"}), _PULLING),
    "push": Verb((2, MANY), frozenset({"--insecure", "--populate-cache"}), _PULLING | {"--chunk-size", "--label"}),
    "rename": Verb((2, 2)),
    "run": Verb((1, 1), _RUN_FLAGS, _RUN_VALUES),
    "set": Verb(
        (1, 1),
        frozenset({"--random-mac", "--random-serial", "--display-refit", "--no-display-refit"}),
        frozenset({"--cpu", "--memory", "--display", "--disk", "--disk-size"}),
    ),
    "stop": Verb((1, 1), values=frozenset({"-t", "--timeout"})),
    "suspend": Verb((1, 1)),
}
_NUMBERS = (
    *("--concurrency", "--prune-limit", "--chunk-size", "--cpu", "--memory", "--disk-size", "--wait", "--timeout", "-t"),
    *("--older-than", "--space-budget", "--cache-budget"),
)
LONGEST_NUMBER = 15  # digits; what is longer overflows something
_CHOICES = {
    "--format": ("text", "json"),
    "--source": ("local", "oci"),
    "--entries": ("caches", "vms"),
    "--resolver": ("dhcp", "arp", "agent"),
}


def parse(argv: Sequence[str]) -> Arguments:
    """`argv` without the program's own name."""
    if not argv or argv[0] in ("-h", "--help", "help", "--version"):
        return Arguments(argv[0] if argv else "help", wants_help=True)
    verb = VERBS.get(argv[0])
    if verb is None:
        raise usage("<subcommand>", f"Unexpected argument '{argv[0]}'")
    names: list[str] = []
    flags: set[str] = set()
    values: dict[str, list[str]] = {}
    rest = list(argv[1:])
    while rest:
        word = rest.pop(0)
        option, equals, given = word.partition("=")
        if verb.is_command and names:
            names += [word, *rest]
            break
        if word == "--":
            names += rest
            break
        if not word.startswith("-") or word == "-":
            names.append(word)
        elif word in ("-h", "--help"):
            return Arguments(argv[0], wants_help=True)
        elif word in verb.flags:
            flags |= {"-i", "-t"} if word in ("-it", "-ti") else {word}
        elif option in verb.values:
            if not equals and not rest:
                raise usage(argv[0], f"Missing value for '{option} <value>'")
            values.setdefault(option, []).append(given if equals else rest.pop(0))
        else:
            raise usage(argv[0], f"Unknown option '{option}'")
    _check(argv[0], verb, names, values)
    return Arguments(argv[0], tuple(names), frozenset(flags), values)


def _check(word: str, verb: Verb, names: list[str], values: dict[str, list[str]]) -> None:
    fewest, most = verb.names
    if len(names) < fewest:
        raise usage(word, "Missing expected argument '<name>'")
    if len(names) > most:
        raise usage(word, f"Unexpected argument '{names[most]}'")
    if "" in names[:fewest]:
        raise usage(word, "name should not be empty")
    for option in _NUMBERS:
        for given in values.get(option, []):
            if not given.isdecimal() or len(given) > LONGEST_NUMBER:
                raise usage(word, f"The value '{given}' is invalid for '{option}'")
    if any(int(given) < 1 for given in values.get("--concurrency", [])):
        raise usage(word, "network concurrency cannot be less than 1")
    for option, choices in _CHOICES.items():
        for given in values.get(option, []):
            if given not in choices:
                raise usage(word, f"The value '{given}' is invalid for '{option} <value>'")
