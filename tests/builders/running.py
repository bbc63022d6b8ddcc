"""Measurements that are going on, for pages about them."""

from datetime import UTC, datetime, timedelta

from flare.reports.pages.running import Disk, Event, Now, Running, State, TeamRun
from flare.results.efficiency_csv import CaseRecord, RunStatus
from flare.results.refused_csv import Refusal

BEGUN = datetime(2026, 11, 22, 1, 50, tzinfo=UTC)


def record(case, runtime_s=None, status="ok", **more):
    """What came of a case."""
    return CaseRecord(case=case, status=RunStatus(status), runtime_s=runtime_s, **more)


def team_run(team, cases, records=(), **more):
    """A team of which these cases were run, and all others are left."""
    known = {found.case: found for found in records}
    left = tuple(case for case in cases if case not in known)
    return TeamRun(**{"team": team, "records": known, "left": left} | more)


def running(cases, *teams, **more):
    """A measurement ten minutes after it has begun."""
    settings = {
        "state": State.RUNNING,
        "as_of": BEGUN + timedelta(minutes=10),
        "begun": BEGUN,
        "challenge": "FLARE21",
        "cases": tuple(cases),
        "teams": teams,
        "longest_case_s": 3600.0,
    }
    return Running(**settings | more)


def eventful(names=("team_a", "team_b", "team_c", "team_d"), cases=12, **more):
    """A measurement in which everything has happened that can happen.

    Of five or more teams, all others are measured without trouble.
    """
    cases = [f"case_{n:03}" for n in range(1, cases + 1)]
    odd, slow, gone, fresh, *others = names
    statuses = [s.value for s in RunStatus]
    records = {
        odd: [
            record(c, None if s != "ok" else 20.0, s, message="" if s == "ok" else odd)
            for c, s in zip(cases, statuses, strict=False)
        ],
        slow: [
            record(c, 100.0 + 7 * n % 31, doubts="few samples" if n == 3 else "")
            for n, c in enumerate(cases[:9])
        ],
        gone: [record(c, 3.0 + n) for n, c in enumerate(cases[:2])],
        fresh: [],
    }
    for number, name in enumerate(others):
        records[name] = [
            record(c, 5.0 + (17 * n + 29 * number) % 97) for n, c in enumerate(cases)
        ]
    teams = {
        name: team_run(name, cases, own, whole_s=(30.0,) * bool(own))
        for name, own in records.items()
    }
    for name, problem in (
        (gone, {"problem": f"{gone}: its image cannot be loaded. [H05]"}),
        (fresh, {"doubts": (f"{fresh}: bash words",), "scoring_problem": fresh}),
    ):
        left = tuple(c for c in cases if c not in {r.case for r in records[name]})
        teams[name] = team_run(name, cases, records[name], left=left, **problem)
    since = BEGUN + timedelta(minutes=9)
    settings = {
        "now": Now(
            team=odd,
            case=next(iter(teams[odd].left), cases[0]),
            since=since,
            until=BEGUN + timedelta(hours=2),
        ),
        "refused": (Refusal(team=odd, archive=odd, problem=f"{odd}: no tar file"),),
        "disks": (
            Disk(name="the disk of the results", free_bytes=3 * 2**30),
            Disk(name="the disk of the engine", free_bytes=300 * 2**30),
        ),
        "events": (
            Event(at=since, text=f"{slow} case_009: ok, 101.00 s"),
            Event(at=since + timedelta(seconds=3), text=f"{gone}: ended"),
        ),
        "settings": (("GPU", "none"), ("time limit of a run", "3600 s")),
    }
    return running(cases, *teams.values(), **settings | more)
