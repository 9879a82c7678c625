"""What clients of a server that is cut off may believe, and whether it holds.

Every answer, list and watch event tells which content an object had at a revision: no revision may ever tell of two. A write
whose answer came is there after any cut; one whose answer did not come may be there or not, and nothing else may be.
Decides and remembers; talks to no server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

GONE = "(gone)"

Contents = Mapping[str, str]


@dataclass
class Story:
    """One object: what was acknowledged of it, and the one write whose answer is open."""

    acknowledged: str = GONE
    revision: int = 0
    open_attempt: str | None = None


@dataclass
class Ledger:
    stories: dict[str, Story] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    acknowledged_count: int = 0
    survivors: int = 0  # writes whose answer was lost and that were there all the same
    told: dict[int, tuple[str, str]] = field(default_factory=dict)  # by revision: whose it is, and what it holds

    def story(self, name: str) -> Story:
        return self.stories.setdefault(name, Story())

    def attempt(self, name: str, content: str) -> None:
        self.story(name).open_attempt = content

    def acknowledge(self, name: str, content: str, revision: int) -> None:
        """The answer came. That of a deletion has no revision (0); the watch tells it."""
        story = self.story(name)
        story.acknowledged, story.open_attempt = content, None
        story.revision = revision
        self.acknowledged_count += 1
        if revision:
            self.note(revision, name, content)

    def note(self, revision: int, name: str, content: str) -> None:
        """Somebody was told that at this revision this object became this."""
        before = self.told.setdefault(revision, (name, content))
        if before != (name, content):
            self.problems.append(f"revision {revision} was {before} and is {(name, content)}")

    def check_list(self, listed: Mapping[str, tuple[int, str]]) -> None:
        """After a restart: every object is as acknowledged, or as the one open attempt would have made it."""
        for name in sorted(listed.keys() | self.stories.keys()):
            story = self.story(name)
            revision, content = listed.get(name, (0, GONE))
            if revision:
                self.note(revision, name, content)
            if content == story.open_attempt and content != story.acknowledged:
                self.survivors += 1
                if revision and revision <= story.revision:
                    self.problems.append(f"{name} went back from {story.revision} to {revision}")
            elif (content, revision) != (story.acknowledged, story.revision):
                self.problems.append(
                    f"{name} is {content!r} at {revision}; acknowledged was {story.acknowledged!r} at {story.revision}, "
                    f"open was {story.open_attempt!r}"
                )
            story.acknowledged, story.revision, story.open_attempt = content, revision, None
