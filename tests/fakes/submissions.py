"""A source of submissions that notes what it is asked, with work done at once."""

from datetime import UTC, datetime, timedelta

from flare.platforms.serving.source import ClaimAnewError, Submission

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Passing:
    """Time that passes when somebody waits."""

    def __init__(self):
        self.at, self.pauses = BEGIN, []

    def __call__(self):
        return self.at

    def sleep(self, seconds):
        """Wait; a test that waits for days has gone wrong."""
        self.pauses.append(seconds)
        self.at += timedelta(seconds=seconds)
        assert self.at < BEGIN + timedelta(days=3)


class KilledError(BaseException):
    """Stands for a kill: nothing of the service is done behind it."""


class FakeSource:
    """Submissions by name; `log` has each call that changes something."""

    name, is_named = "a fake", True
    is_heard = False
    """Whether a claim was heard although the service was killed."""

    def __init__(self, *names):
        self.names, self.log, self.answers = names, [], {}

    def resume(self, known):
        return ""

    def claimable(self):
        """All of them, also those that are claimed, as a slow platform might."""
        return [
            Submission(key=n, team=n, user=n, title=f"{n}.tar.gz") for n in self.names
        ]

    def claim(self, submission, *, is_again):
        """Note it; what is not heard is claimed anew."""
        self.log.append(("claim", submission.key, is_again))
        if is_again and not self.is_heard:
            raise ClaimAnewError("nobody has heard of it")
        return submission

    def download(self, submission, folder):
        self.log.append(("download", submission.key))
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{submission.team}.tar.gz"

    def answer(self, submission, answer, *, is_again):
        """Note it; a second answer is a fault."""
        self.log.append(("answer", submission.key, is_again))
        assert is_again or submission.key not in self.answers
        self.answers[submission.key] = answer


class FakeWork:
    """Work that gives a team's number of cases, or raises what a step is told to."""

    cases = 3

    def __init__(self, **errors):
        self.errors, self.log, self.finished = errors, [], 0

    def _do(self, step, what):
        self.log.append((step, what))
        if step in self.errors:
            raise self.errors[step]

    def check_host(self):
        if "host" in self.errors:
            raise self.errors["host"]

    def check(self, file):
        self._do("check", file.name)

    def measure(self, file):
        self._do("measure", file.name)

    def score(self, team):
        self._do("score", team)
        return {"aggregates": {"dsc_mean": 0.5}}

    def done(self, team):
        assert team
        return self.finished
