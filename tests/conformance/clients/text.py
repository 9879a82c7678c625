"""What a program printed, without what is different at every run.

Replaced: uids, times, ages, revisions, addresses, tokens, and how wide columns are. Nothing else: a word that differs is a
difference.
"""

import re

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), text)
    for pattern, text in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        # Whether a watch ends just before or just after its client gives up is a race that the client tells of.
        (r"^[IWE]\d{4} .*\breflector\.go:.*\n", ""),
        (r"\b[IWE]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+", "<klog>"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000(?: UTC)?", "<time>"),
        (r"(?<![\w./:-])(\d+[smhd])+(?![\w.-])", "<age>"),
        (r"<invalid>", "<age>"),  # an age of less than nothing: the clocks of two processes
        (r'("?resourceVersion"?: )"\d+"', r'\1"<rv>"'),
        (r"(Resource Version:\s+)\d+", r"\1<rv>"),
        # The whole of two objects: a real server prints its inner names for fields.
        (r"(?s)(Forbidden: pod updates may not change fields other than [^\n]*).*", r"\1"),
        (r'(?s)Invalid value: "(map\[|\{).*?"(?=: )', "Invalid value: <object>"),
        (r"\b127\.0\.0\.1:\d+", "<address>"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"\b[0-9a-f]{64}\b", "<hash>"),
        (r"(LIVE|MERGED)-\d+", r"\1"),  # the folders of kubectl diff
        (r"/(tmp|var)/\S*?/(?=(LIVE|MERGED)\b)", "<folder>/"),
        (r"kubectl-edit-[\w.]+|/\S+/kubectl-[^/]*edit-\d+\.yaml", "<file>"),
        (r"(?<=\S) {2,}", " "),
        (r"[ \t]+$", ""),
    )
)


def normalise(text: str) -> str:
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
