from fractions import Fraction
from itertools import product
from math import comb
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vignette_analysis.figures.deliveries import Delay
from vignette_analysis.figures.statistics import mean_interval, median_interval, resampled_medians, stream, wilson_interval


def distance(drawn: np.ndarray, exact: dict[float, float]) -> float:
    """The greatest distance of two distribution functions, the second one given by its probabilities."""
    points = sorted(exact)
    cumulated = np.cumsum([exact[p] for p in points])
    return max(abs(np.mean(drawn <= p) - c) for p, c in zip(points, cumulated, strict=True))


# By the inequality of Dvoretzky, Kiefer and Wolfowitz a right one differs by more once in 10^6 streams; the stream is fixed.
FAR = 0.027


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_medians_are_those_of_all_resamples_there_are(n):
    values = np.array([1, 2, 4, 8, 16, 32][:n])
    exact: dict[float, float] = {}
    for resample in product(values.tolist(), repeat=n):
        exact[median(resample)] = exact.get(median(resample), 0) + 1 / n**n
    drawn = resampled_medians(values, stream("run-1", "all"))
    assert set(drawn) <= set(exact) and distance(drawn, exact) < FAR


@pytest.mark.parametrize("n", [7, 31, 201])
def test_medians_of_odd_numbers_of_values_have_the_binomial_distribution(n):
    m = (n + 1) // 2

    def at_most(k: int) -> float:  # P(the median's rank <= k): at least m of n draws are among the k least
        return float(sum(Fraction(comb(n, j) * k**j * (n - k) ** (n - j), n**n) for j in range(m, n + 1)))

    drawn = resampled_medians(np.arange(1, n + 1), stream("run-1", str(n)))
    assert max(abs(np.mean(drawn <= k) - at_most(k)) for k in range(1, n + 1, max(1, n // 40))) < FAR


def test_medians_of_many_values_are_those_of_drawn_resamples():
    values = np.sort(stream("values").exponential(size=200))
    plain = np.median(stream("plain").choice(values, (10_000, 200)), axis=1)
    ours = np.sort(resampled_medians(values, stream("ours")))
    assert max(abs(np.mean(plain <= v) - np.mean(ours <= v)) for v in ours[::50]) < 1.42 * FAR  # two samples


def test_the_interval_of_a_median_covers_it_as_often_as_its_level_says():
    random, covered, true_median = stream("coverage"), 0, np.log(2)
    for trial in range(400):
        low, high = median_interval(np.sort(random.exponential(size=60)), stream("run", str(trial)))
        covered += low <= true_median <= high
    assert 0.92 <= covered / 400 <= 0.98


def test_a_run_has_the_same_interval_each_time_and_another_run_another():
    values = np.sort(stream("values").exponential(size=1000))
    intervals = [median_interval(values, stream(uid, "all")) for uid in ("run-1", "run-1", "run-2")]
    assert intervals[0] == intervals[1] != intervals[2]


@given(st.lists(st.integers(-(10**15), 10**15), max_size=12))
def test_an_interval_lies_within_the_values_and_few_values_have_none(values):
    interval = median_interval(sorted(values), stream("run-1"))
    if len(values) < 6:
        assert interval is None
    else:
        assert min(values) <= interval[0] <= interval[1] <= max(values)


def test_the_interval_of_equal_values_is_that_value():
    assert median_interval([3] * 10, stream("run-1")) == (3.0, 3.0)


def students(values) -> tuple[float, float]:
    """The plain interval of the mean."""
    return stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))


# Long tails, as those of delays: logarithms with a normal distribution, and a power law whose skewness is infinite.
TAILS = {
    "lognormal": (lambda random, n: random.lognormal(0, 1, n), np.exp(0.5)),
    "wide lognormal": (lambda random, n: random.lognormal(0, 1.5, n), np.exp(1.125)),
    "Pareto": (lambda random, n: random.pareto(3, n), 0.5),
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("n", [30, 100])
def test_the_interval_of_a_mean_covers_it_more_often_than_students_where_tails_are_long(tail, n):
    draw, true_mean = TAILS[tail]
    random, covered, plain, trials = stream("tails", tail, str(n)), 0, 0, 1000
    for _ in range(trials):
        values = draw(random, n)
        for_mean, for_plain = mean_interval(values), students(values)
        covered += for_mean[0] <= true_mean <= for_mean[1]
        plain += for_plain[0] <= true_mean <= for_plain[1]
    assert plain + 10 < covered
    assert 0.88 <= covered / trials <= 0.97


def test_the_interval_of_a_mean_without_skewness_is_students():
    values = [-3.0, -2, -1, 0, 1, 2, 3]
    assert mean_interval(values) == pytest.approx(students(values), rel=1e-12)


@given(st.lists(st.integers(-(10**15), 10**15), max_size=12), st.integers(-(10**12), 10**12))
def test_the_interval_of_a_mean_contains_it_moves_with_the_values_and_few_have_none(values, constant):
    interval = mean_interval(values)
    if len(values) < 6:
        assert interval is None
        return
    mean, width = float(np.mean(values)), interval[1] - interval[0]
    assert interval[0] - 1 <= mean <= interval[1] + 1
    assert mean_interval([v + constant for v in values]) == pytest.approx([limit + constant for limit in interval], abs=1e-6 * width + 1)
    mirrored = mean_interval([-v for v in values])
    assert mirrored == pytest.approx((-interval[1], -interval[0]), abs=1e-6 * width + 1)


def test_the_interval_of_a_mean_inverts_halls_transformation():
    # T = (mean - limit) / error; g(T) = T + s T^2 / 3 + s^2 T^3 / 27 + s / 6 with s the skewness by the root of n is a quantile of t.
    values = np.array([1.0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
    skewness, error = stats.skew(values) / np.sqrt(10), stats.sem(values)
    for limit, quantile in zip(mean_interval(values), (stats.t.ppf(0.975, 9), stats.t.ppf(0.025, 9)), strict=True):
        t = (values.mean() - limit) / error
        assert t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6 == pytest.approx(quantile, rel=1e-9)


def test_the_interval_of_a_mean_delay_is_bounded_at_0_unless_a_clock_made_delays_negative():
    few_are_slow = np.array([2_000_000] * 11 + [522_000_000])
    low, high = mean_interval(few_are_slow)
    assert low < 0
    assert Delay.of(few_are_slow, stream("x")).mean_interval == (0.0, high / 1e9)
    shifted = few_are_slow - 3_000_000
    assert Delay.of(shifted, stream("x")).mean_interval == tuple(limit / 1e9 for limit in mean_interval(shifted))


def test_the_interval_of_the_mean_of_equal_values_is_that_value():
    assert mean_interval([3] * 10) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # By the formula, by hand: z^2 = 3.8415.
        (0, 1, 0.0, 0.7935),
        (1, 1, 0.2065, 1.0),
        (1, 2, 0.0945, 0.9055),
    ],
)
def test_shares_have_wilsons_interval(count, total, low, high):
    assert wilson_interval(count, total) == pytest.approx((low, high), abs=5e-5)


def test_a_share_of_nothing_has_no_interval_and_an_impossible_one_is_refused():
    assert wilson_interval(0, 0) is None
    with pytest.raises(ValueError, match="count 3 of total 2"):
        wilson_interval(3, 2)


@given(st.integers(1, 10**7), st.data())
def test_the_interval_of_a_share_solves_the_score_equation(total, data):
    count = data.draw(st.integers(0, total))
    share = count / total
    for bound in wilson_interval(count, total):
        # |share - bound| = z sqrt(bound (1 - bound) / total), which defines it
        assert (share - bound) ** 2 == pytest.approx(3.841458820694124 * bound * (1 - bound) / total, rel=1e-6, abs=1e-12)
