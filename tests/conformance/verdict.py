"""Whether two answers are the same, and a text that shows where they are not.

Real minors differ among themselves in a few texts, so an answer that equals the recorded one of the other minor is equal too.
"""

import difflib
import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("other_minor.json")
CONTEXT_LINES = 6
MOST_LINES = 400  # of one diff; an answer that shares nothing with the other needs no more


def recorded_answers() -> dict[str, list[Any]]:
    """By number, what each supported minor answers, where they differ: of an object only the members that differ."""
    recorded: dict[str, list[Any]] = json.loads(RECORDED.read_text())
    return recorded


def is_broken(answer: Any) -> bool:
    """The check could not be carried out."""
    return isinstance(answer, dict) and set(answer) == {"broke"}


def is_equal(number: str, wanted: Any, got: Any, recorded: dict[str, list[Any]]) -> bool:
    if is_broken(got):
        return False
    return wanted == got or any(got in (part, _of_minor(wanted, part)) for part in recorded.get(number, []))


def differing_parts(answers: list[Any]) -> list[Any]:
    """Of answers of several minors what has to be recorded; nothing when they are equal."""
    first = answers[0]
    if all(answer == first for answer in answers):
        return []
    if any(not isinstance(answer, dict) or answer.keys() != first.keys() for answer in answers):
        return answers
    differing = [key for key in first if any(answer[key] != first[key] for answer in answers)]
    return [{key: answer[key] for key in differing} for answer in answers]


def _of_minor(wanted: Any, part: Any) -> Any:
    """A minor's whole answer: what is not recorded is the same on all of them."""
    if isinstance(wanted, dict) and isinstance(part, dict) and part.keys() <= wanted.keys():
        return {**wanted, **part}
    return part


def difference(wanted: Any, got: Any, names: tuple[str, str] = ("real", "embedded")) -> str:
    """A unified diff of the two as indented JSON. Each changed block is preceded by the path of the value it is in."""
    before, after = _lines(wanted), _lines(got)
    paths = _paths(before)
    shown: list[str] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        first_change = next(opcode for opcode in group if opcode[0] != "equal")
        shown.append(f"@@ {paths[min(first_change[1], len(paths) - 1)]}")
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                shown += [f"  {line}" for line in before[start:end]]
                continue
            shown += [f"- {line}" for line in before[start:end]]
            shown += [f"+ {line}" for line in after[new_start:new_end]]
    if len(shown) > MOST_LINES:
        shown = [*shown[:MOST_LINES], f"... and {len(shown) - MOST_LINES} more lines"]
    return "\n".join([f"--- {names[0]}", f"+++ {names[1]}", *shown])


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).splitlines()


def _paths(lines: list[str]) -> list[str]:
    """Of each line of indented JSON, where in the document it is."""
    stack: list[str] = []
    counts: list[int] = []
    found = []
    for line in lines:
        text = line.strip()
        if text[:1] in "}]" and stack:
            stack.pop()
            counts.pop()
            found.append("".join(stack))
            continue
        key, quote, _ = text[1:].partition('": ') if text.startswith('"') else ("", "", "")
        step = f".{key}" if quote else (f"[{counts[-1]}]" if counts else "")
        if counts:
            counts[-1] += 1
        found.append("".join([*stack, step]))
        if text.endswith(("{", "[")):
            stack.append(step)
            counts.append(0)
    return found
