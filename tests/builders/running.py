"""Measurements at some moment, for pages about them."""

from datetime import UTC, datetime

from flare.reports.measuring import MeasuringProgress, TeamProgress
from flare.results.archives_csv import Refusal
from flare.results.efficiency_csv import CaseRecord, RunStatus

AS_OF = datetime(2026, 11, 22, 2, tzinfo=UTC)


def record(case, runtime_s=None, status="ok", **more):
    return CaseRecord(case=case, status=RunStatus(status), runtime_s=runtime_s, **more)


def team_run(team, records=(), **more):
    return TeamProgress(team=team, records={own.case: own for own in records}, **more)


def running(cases, *teams, **more):
    settings = {"as_of": AS_OF, "is_running": True} | more
    return MeasuringProgress(cases=tuple(cases), teams=teams, **settings)


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
    problems = {gone: f"{gone}: its image cannot be loaded. [H05]"}
    settings = {
        "refused": (Refusal(team=odd, archive=odd, problem=f"{odd}: no tar file"),),
        "doubts": ((fresh, f"{fresh}: bash words"),),
    }
    teams = (
        team_run(name, own, problem=problems.get(name, ""))
        for name, own in records.items()
    )
    return running(cases, *teams, **settings | more)
