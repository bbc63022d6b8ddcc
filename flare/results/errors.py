"""What is wrong with the results of teams."""

from __future__ import annotations

from flare.common.errors import AboutFile, HostError, OrganiserError


class MetricsFileError(AboutFile, OrganiserError):
    """A metrics.json cannot be read, or not be compared with another one.

    A file that was given to `leaderboard` or `report` is not what an evaluation wrote.
    Or several were given to `report`, to be compared case by case, and one is of
    another challenge, was scored by other rules, or has none of the others' cases: the
    message says what is different. Or the label maps that were given to `report` with
    it are not those that it was made from: nothing is shown of scores that it does not
    have.
    """

    code = "G05"
    remedy = "Give the metrics.json that an evaluation has written."


class RankingError(AboutFile, OrganiserError):
    """Results of teams contradict themselves, or cannot be ranked as asked.

    For organisers: the results that were given to `rank` contradict themselves, or
    something is not there. The message names the file, and the rows; where teams were
    scored by other rules, references or options, the team, what is different, and the
    command that mends it.
    """

    code = "G06"
    remedy = "The documentation's page The final ranking says what results look like."


class GroupsFileError(AboutFile, OrganiserError):
    """A table of groups of cases cannot be read.

    For organisers: the file that was given with `--groups` is not a CSV file in UTF-8
    with a column `case` and at least one other, or a row is about a case that was not
    scored, or about one that another row is about. The message names the line. A column
    of numbers, such as an age, is no group: write ranges, or leave it out.
    """

    code = "G07"
    remedy = "The documentation's page Reports to look at says what it holds."


class MeasurementError(AboutFile, HostError):
    """A measurement cannot begin, or cannot go on as it was.

    Something has changed since the team was measured before, or stands in the way: the
    message names the file and what to do. What was measured is kept. Another computer
    or GPU than the one that the team was measured on is accepted with `--unlike-host
    REASON`: docs/organisers/measuring.md, "Is it the same computer?".
    """

    code = "H07"
    remedy = "The documentation's page Measuring tells how teams are measured."


class ChangedSettingError(MeasurementError, OrganiserError):
    """A team was measured with other options before; only who gives them can mend it.

    So a service ends with it, instead of trying again.
    """
