"""Progress by the clock: how times are written, and when a line is due."""

import re

import pytest

from ops.training.pace import Countdown, Pace, clock


def test_a_time_is_hours_minutes_and_seconds():
    assert [clock(s) for s in (0, 59.6, 3_725, 360_000)] == ["0:00:00", "0:01:00", "1:02:05", "100:00:00"]


@pytest.mark.parametrize(
    ("pace", "due"),
    [
        (Pace(0.0), [True, True, True]),
        (Pace(1e9), [False, False, False]),
        (Pace(1e9, at_once=True), [True, False, False]),
    ],
)
def test_something_is_due_once_in_its_time(pace, due):
    assert [pace.due() for _ in due] == due


def test_a_countdown_tells_the_share_and_what_is_left():
    lines: list[str] = []
    tell = Countdown("ablation", lines.append, every_s=0.0)
    for done in (1, 2, 4):
        tell(done, 4)
    assert [re.sub(r"[\d.]+ s each", "# s each", line) for line in lines] == [
        "ablation 1/4 (25%) # s each, ETA 0:00:00",
        "ablation 2/4 (50%) # s each, ETA 0:00:00",
        "ablation 4/4 (100%) # s each, ETA 0:00:00",
    ]
    seldom: list[str] = []
    Countdown("ablation", seldom.append, every_s=1e9)(1, 4)
    assert seldom == []
