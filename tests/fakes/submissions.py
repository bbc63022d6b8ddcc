"""A source of submissions that notes what it is asked, with work done at once."""

from datetime import UTC, datetime, timedelta

from flare.platforms.serving.source import NotNowError, Submission

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


class Failing:
    """Notes each step of what is done in `log`, and raises what it is told to.

    `errors` has a list for each step, or for a step of a submission: what goes wrong
    the next times.
    """

    def __init__(self):
        self.errors, self.log = {}, []

    def do(self, step, key="", *more):
        """Note a step, and fail if it shall."""
        self.log.append((step, key, *more))
        for waiting in (self.errors.get((step, key)), self.errors.get(step)):
            if waiting:
                raise waiting.pop(0)


class FakeSource(Failing):
    """Submissions by name, and the answers to them; `at` is when these came."""

    name, is_named = "a fake", True
    is_one_at_a_time = False
    is_heard = False
    """Whether a claim was heard although the service was killed."""

    def __init__(self, *names, now=lambda: BEGIN):
        super().__init__()
        self.names, self.now, self.answers, self.at = names, now, {}, {}

    def claimable(self):
        """All of them, also those that are claimed, as a slow platform might."""
        self.do("claimable")
        return [
            Submission(key=n, team=n, user=n, title=f"{n}.tar.gz") for n in self.names
        ]

    def claim(self, submission, *, is_again):
        """Note it; what is not heard is claimed anew."""
        self.do("claim", submission.key, is_again)
        if is_again and not self.is_heard:
            raise NotNowError("nobody has heard of it")
        return submission

    def download(self, submission, folder):
        self.do("download", submission.key)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{submission.team}.tar.gz"

    def answer(self, submission, answer, *, is_again):
        """Note it; a second answer is a fault."""
        self.do("answer", submission.key, is_again)
        assert is_again or submission.key not in self.answers
        self.answers[submission.key] = answer
        self.at[submission.key] = self.now() - BEGIN


class FakeWork(Failing):
    """Work that gives a team's number of cases."""

    cases, finished = 3, 0

    def check_host(self):
        self.do("host")

    def check(self, file):
        self.do("check", file.name.removesuffix(".tar.gz"))

    def measure(self, file):
        self.do("measure", file.name.removesuffix(".tar.gz"))

    def score(self, team):
        self.do("score", team)
        return {"aggregates": {"dsc_mean": 0.5}}

    def done(self, team):
        assert team
        return self.finished
