"""Levels by hour of the day, and their growth."""

import numpy as np
import pytest

from sooner.analysis.sizing.facts import DAY_S, HOUR_S
from sooner.analysis.sizing.hours import hour_of, levels_of

MONDAY = 1_767_571_200.0
"""2026-01-05, 0 h UTC."""
NOW = MONDAY + 14 * DAY_S


def truth(times, growth=0.0):
    hours = times % DAY_S // HOUR_S
    return np.where((hours >= 8) & (hours < 20), 30.0, 20.0) * np.exp(growth * (times - NOW) / DAY_S)


def seen(share, seed=1):
    times = MONDAY + 300.0 * np.arange(14 * 288) + 150.0
    return times[np.random.default_rng(seed).random(len(times)) < share]


def test_an_hour_of_a_weekend_is_not_one_of_a_working_day():
    assert hour_of(MONDAY + np.array([0.0, 5 * HOUR_S, 5 * DAY_S, 7 * DAY_S - 1])).tolist() == [0, 5, 24, 47]


@pytest.mark.parametrize("growth", [0.0, 0.01, -0.02])
def test_hours_and_growth_are_told_apart_and_carried_on(growth):
    times = seen(0.5)
    found = levels_of(times, truth(times, growth), np.full(len(times), 300.0), NOW)
    coming = NOW + 3 * HOUR_S * np.arange(16) + 600.0
    assert found.at(coming) == pytest.approx(truth(coming, growth), rel=0.03)
    assert found.growth == pytest.approx(growth, abs=0.002)


def test_growth_is_seen_through_days_that_show_other_hours():
    # The first week shows only days and the second one only nights: a mean by hour takes growth for the hour.
    times = seen(1.0)
    is_day = (times % DAY_S >= 8 * HOUR_S) & (times % DAY_S < 20 * HOUR_S)
    is_late = times >= MONDAY + 7 * DAY_S
    times = times[(is_day & ~is_late) | (~is_day & is_late) | (times >= NOW - DAY_S)]
    found = levels_of(times, truth(times, 0.015), np.full(len(times), 300.0), NOW)
    coming = NOW + HOUR_S * np.arange(24) + 60.0
    assert found.at(coming) == pytest.approx(truth(coming, 0.015), rel=0.08)


def test_an_hour_that_was_never_seen_is_like_its_neighbours():
    times = seen(1.0)
    times = times[(times % DAY_S // HOUR_S != 12) & (times % DAY_S // HOUR_S != 2)]
    found = levels_of(times, truth(times), np.full(len(times), 300.0), NOW)
    noon, night = found.at(np.array([NOW + 12.5 * HOUR_S, NOW + 2.5 * HOUR_S]))
    assert noon == pytest.approx(30, rel=0.05)
    assert night == pytest.approx(20, rel=0.05)


def test_noise_is_not_taken_for_hours():
    times = seen(0.02, seed=3)
    values = 20 * np.exp(np.random.default_rng(2).normal(0, 0.5, len(times)))
    found = levels_of(times, values, np.full(len(times), 300.0), NOW)
    assert np.abs(found.hours).max() < 0.1
    assert abs(found.growth) < 0.01


def test_growth_is_not_carried_on_for_weeks():
    times = seen(0.5)
    found = levels_of(times, truth(times, 0.01), np.full(len(times), 300.0), NOW)
    assert found.at(np.array([NOW + 3 * DAY_S])) == found.at(np.array([NOW + 24 * DAY_S]))


def test_one_look_is_enough_for_a_level():
    found = levels_of(np.array([NOW - 60.0]), np.array([7.0]), np.array([30.0]), NOW)
    assert found.at(NOW + HOUR_S * np.arange(200)) == pytest.approx(np.full(200, 7.0))


def test_levels_are_scaled_at_every_hour():
    times = seen(0.5)
    found = levels_of(times, truth(times), np.full(len(times), 300.0), NOW)
    assert found.scaled(2.0).at(times) == pytest.approx(2.0 * found.at(times))
