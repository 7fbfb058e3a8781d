"""Differences of two samples of delays, and of two shares of losses, where values come in clusters.

Messages that follow each other meet the same queues and radios, so a run's deliveries are not independent
draws. The independent *unit* is a block of a run, or a whole run. Every variance here is that of
units' totals, which holds for any dependence within a unit. With units of one value each, the estimators are the
textbook ones.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb, isnan, sqrt

import numpy as np

from ..figures.statistics import LEVEL, wilson_interval

# Most order statistics of a sample for differences. Thinning n values to m moves the level of a quantile of
# the differences by less than 1/m: their median lies between the quantiles 0.4998 and 0.5002 of all differences.
MAX_ORDER_STATISTICS = 5_000
# Most values of a sample for tests. Of more, every n-th of each unit stands for its neighbours: a unit's share below
# any value moves by less than half of one remaining value.
MAX_PLACED = 50_000
# Up to this many differences are computed and sorted.
_FEW = 20_000
# Fewer repeats cannot show how much runs vary: no permutation test of three against three gives p below 0.1.
FEWEST_REPEATS = 4
# Degrees of freedom of a variance that is known.
_KNOWN = 1e15


@dataclass(frozen=True)
class Sample:
    """Integers in ascending order, such as delays in nanoseconds, and the unit of each."""

    values: np.ndarray
    units: np.ndarray
    # The median of each unit, if already known.
    known_medians: np.ndarray | None = None

    @classmethod
    def of(cls, values: np.ndarray, units: np.ndarray) -> "Sample":
        """Order the values, and number the units that have any."""
        order = np.argsort(values, kind="stable")
        return cls(np.asarray(values, dtype=np.int64)[order], _numbered(units)[order])

    @property
    def count(self) -> int:
        """The number of units."""
        return int(self.units.max()) + 1 if len(self.units) else 0

    @cached_property
    def medians(self) -> np.ndarray:
        """The median of each unit."""
        if self.known_medians is not None:
            return self.known_medians
        order = np.argsort(self.units, kind="stable")
        sizes = np.bincount(self.units)
        starts, values = np.cumsum(sizes) - sizes, self.values[order]
        return (values[starts + (sizes - 1) // 2] + values[starts + sizes // 2]) / 2

    def thinned(self) -> "Sample":
        """The sample for tests: at most about MAX_PLACED values, with the medians of all."""
        every = -(-len(self.values) // MAX_PLACED)
        if every <= 1:
            return self
        by_unit = np.argsort(self.units, kind="stable")
        sizes = np.bincount(self.units)
        place = np.arange(len(by_unit)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        middle = np.repeat(np.minimum(every // 2, (sizes - 1) // 2), sizes)
        kept = np.sort(by_unit[place % every == middle])
        return Sample(self.values[kept], self.units[kept], self.medians)


def _numbered(units: np.ndarray) -> np.ndarray:
    """Units numbered from 0, without those that have nothing; in two bytes, as samples are large."""
    units = np.asarray(units)
    if units.dtype.kind != "u":
        units = np.unique(units, return_inverse=True)[1]
    numbers = np.cumsum(np.bincount(units) > 0) - 1
    return numbers.astype(np.uint16 if len(numbers) < 1 << 16 else np.int64)[units]


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; limits are None where there are too few units for one."""

    estimate: float
    low: float | None
    high: float | None

    def times(self, factor: float) -> dict[str, float | None]:
        """The JSON form in another unit."""
        return {key: None if value is None else value * factor for key, value in vars(self).items()}


@dataclass(frozen=True)
class Test:
    """A test's statistic and two-sided p; the statistic is None where it has no finite value."""

    statistic: float | None
    degrees_of_freedom: float | None
    p: float | None
    # The least p that a permutation test of this many units can give.
    least_p: float = 1.0


@dataclass(frozen=True)
class _Variance:
    """The variance of a mean, by the totals of units."""

    value: float
    units: int


def _variance(values: np.ndarray, units: np.ndarray, mean: float) -> _Variance:
    return _variance_of_totals(np.bincount(units, weights=values), np.bincount(units), mean)


def _variance_of_ranks(ranks: np.ndarray, units: np.ndarray, mean: float, count: int) -> _Variance:
    """The variance of the mean rank of count values. Few units may agree by chance, so it is at least that of independent values."""
    found = _variance(ranks, units, mean)
    return _Variance(float(np.maximum(found.value, np.var(ranks) / count)), found.units)


def _variance_of_totals(totals: np.ndarray, sizes: np.ndarray, mean: float) -> _Variance:
    """Variance of a mean of clustered values, the ratio estimator: Cochran, "Sampling Techniques" (1977), section 6.3."""
    count = int(np.count_nonzero(sizes))
    if count < 2:
        return _Variance(float("nan"), count)
    return _Variance(float(count / (count - 1) * np.sum((totals - mean * sizes) ** 2) / int(sizes.sum()) ** 2), count)


@dataclass(frozen=True)
class _Difference:
    """A difference that is estimated from two samples: its variance is the sum of theirs."""

    first: _Variance
    second: _Variance

    @property
    def error(self) -> float:
        return sqrt(self.first.value + self.second.value)

    @property
    def degrees_of_freedom(self) -> float:
        """Satterthwaite, "An Approximate Distribution of Estimates of Variance Components", Biometrics Bulletin 2 (1946)."""
        parts = [(v.value, v.units - 1) for v in (self.first, self.second)]
        return sum(v for v, _ in parts) ** 2 / sum(v**2 / d for v, d in parts)

    @property
    def least_p(self) -> float:
        return least_p(self.first.units, self.second.units)

    def quantile(self, level: float) -> float:
        return _t_quantile(self.degrees_of_freedom, level)

    def test(self, difference: float) -> Test:
        """Test that a difference is 0."""
        if isnan(self.error):
            return Test(None, None, None, self.least_p)
        if self.error == 0:
            # All units agree: there is no difference, or every unit has it.
            return Test(None, None, 1.0 if difference == 0 else self.least_p, self.least_p)
        from scipy.special import stdtr

        statistic, freedom = difference / self.error, self.degrees_of_freedom
        return Test(statistic, freedom, min(1.0, max(2 * float(stdtr(freedom, -abs(statistic))), self.least_p)), self.least_p)


def least_p(m: int, n: int) -> float:
    """The least p of any permutation test of m units against n, a lower limit for few units."""
    return min(1.0, 2 / comb(m + n, m))


def _t_quantile(freedom: float, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def _placements(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each of a, the share of b that is below it, equal ones by half; both in ascending order."""
    return (np.searchsorted(b, a, "left") + np.searchsorted(b, a, "right")) / (2 * len(b))


def _greater(a: Sample, b: Sample, shift: int = 0) -> tuple[float, _Difference]:
    """Probability that one of b is greater than one of a after a is shifted, with its variance."""
    first, second = a.thinned(), b.thinned()
    below = _placements(second.values - shift, first.values)
    above = 1 - _placements(first.values + shift, second.values)
    probability = float(np.mean(below))
    return probability, _Difference(
        _variance_of_ranks(above, first.units, probability, len(a.values)),
        _variance_of_ranks(below, second.units, probability, len(b.values)),
    )


def brunner_munzel(a: Sample, b: Sample, level: float = LEVEL) -> tuple[Interval, Test]:
    """Cliff's delta, P(b > a) - P(b < a), with its interval, and the test that it is 0.

    Brunner and Munzel, "The Nonparametric Behrens-Fisher Problem", Biometrical Journal 42 (2000), with the variance of
    units' totals: Obuchowski, "Nonparametric Analysis of Clustered ROC Curve Data", Biometrics 53 (1997). Delta: Cliff,
    "Dominance Statistics", Psychological Bulletin 114 (1993). The variance of two samples that do not overlap at all is
    0: then the interval is Newcombe's, and p the least of a permutation test.
    """
    probability, difference = _greater(a, b)
    test = difference.test(probability - 0.5)
    if isnan(difference.error):
        return Interval(2 * probability - 1, None, None), test
    if difference.error == 0:
        low, high = (probability, probability) if probability == 0.5 else _separated(probability, a.count, b.count, level)
    else:
        half = difference.quantile(level) * difference.error
        low, high = max(probability - half, 0.0), min(probability + half, 1.0)
    return Interval(2 * probability - 1, 2 * low - 1, 2 * high - 1), test


def _separated(probability: float, m: int, n: int, level: float) -> tuple[float, float]:
    """Interval of the probability where samples of m and n independent values do not overlap.

    Newcombe, "Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part 2", Statistics in
    Medicine 25 (2006), method 5.
    """
    from statistics import NormalDist

    z, half = NormalDist().inv_cdf((1 + level) / 2), (m + n) / 2 - 1

    def outside(p: float) -> bool:
        return (1 - p) ** 2 > z**2 * p * (1 - p) * (1 + half * (1 - p) / (2 - p) + half * p / (1 + p)) / (m * n)

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) else (low, middle)
    return (high, 1.0) if probability > 0.5 else (0.0, 1 - high)


def shift(a: Sample, b: Sample, level: float = LEVEL) -> Interval:
    """Hodges-Lehmann shift from a to b, the median of all differences b - a, with its interval.

    Hodges and Lehmann, "Estimates of Location Based on Rank Tests", Annals of Mathematical Statistics 34 (1963). The
    interval is that of a quantile by Woodruff, "Confidence Intervals for Medians and Other Position Measures", JASA 47
    (1952): the differences' quantiles at 1/2 -+ t s, where s is the standard error of P(b - a > shift). It needs no
    equal shapes. None where these levels lie outside of 0 to 1.
    """
    first, second = _thinned(a.values), _thinned(b.values)
    estimate = difference_quantile(first, second, 0.5)
    _, error = _greater(a, b, round(estimate))
    low, high = _levels(error.error, error.quantile(level) if error.error > 0 else 0.0)
    return Interval(estimate, *(None if q is None else difference_quantile(first, second, q) for q in (low, high)))


def _levels(error: float, quantile: float) -> tuple[float | None, float | None]:
    low, high = 0.5 - quantile * error, 0.5 + quantile * error
    return (None, None) if isnan(error) or low <= 0 or high >= 1 else (low, high)


def _thinned(values: np.ndarray) -> np.ndarray:
    if len(values) <= MAX_ORDER_STATISTICS:
        return values
    return values[((np.arange(MAX_ORDER_STATISTICS) + 0.5) * len(values) / MAX_ORDER_STATISTICS).astype(np.int64)]


def difference_quantile(a: np.ndarray, b: np.ndarray, level: float) -> float:
    """Quantile of all differences b - a of whole numbers in ascending order, by linear interpolation, without making them.

    Selection by counting: for a value d, the pairs with b - a <= d are counted in O(n log n), and d is found by bisection.
    """
    place = level * (len(a) * len(b) - 1)
    whole = int(place)
    lower = _nth_difference(a, b, whole)
    if place == whole:
        return float(lower)
    upper = lower if _count(a, b, lower) > whole + 1 else _next_difference(a, b, lower)
    return lower + (upper - lower) * (place - whole)


def _count(a: np.ndarray, b: np.ndarray, most: int) -> int:
    return int(np.searchsorted(b, a + most, "right").sum())


def _nth_difference(a: np.ndarray, b: np.ndarray, n: int) -> int:
    """The n-th smallest difference, counted from 0: between low, which is less, and high, by interpolation and bisection in turn."""
    low, high = int(b[0] - a[-1]) - 1, int(b[-1] - a[0])
    below, up_to = 0, len(a) * len(b)
    halve = False
    while high - low > 1:
        if up_to - below <= _FEW:
            return int(np.partition(_between(a, b, low, high), n - below)[n - below])
        share = 0.5 if halve else (n - below + 0.5) / (up_to - below)
        middle = low + min(max(int((high - low) * share), 1), high - low - 1)
        count = _count(a, b, middle)
        low, high, below, up_to = (low, middle, below, count) if count > n else (middle, high, count, up_to)
        halve = not halve
    return high


def _between(a: np.ndarray, b: np.ndarray, low: int, high: int) -> np.ndarray:
    """All differences that are greater than low and at most high."""
    first = np.searchsorted(b, a + low, "right")
    counts = np.searchsorted(b, a + high, "right") - first
    starts = np.cumsum(counts) - counts
    places = np.arange(counts.sum()) + np.repeat(first - starts, counts)
    return b[places] - np.repeat(a, counts)


def _next_difference(a: np.ndarray, b: np.ndarray, difference: int) -> int:
    """The least difference that is greater than one."""
    place = np.searchsorted(b, a + difference, "right")
    there = place < len(b)
    return int((b[place[there]] - a[there]).min())


def median(sample: Sample, level: float = LEVEL) -> Interval:
    """Median with Woodruff's interval: the quantiles at 1/2 -+ t s, where s is the standard error of the share below it.

    Few units may agree by chance, so the variance is at least that of independent values, by the rule of shares.
    """
    values = sample.values
    estimate = float(np.quantile(values, 0.5))
    below = (values < estimate) + (values == estimate) / 2
    variance, independent = _variance(below, sample.units, float(np.mean(below))), float(np.var(below)) / len(values)
    if isnan(variance.value):
        return Interval(estimate, None, None)
    if independent == 0:
        return Interval(estimate, estimate, estimate)
    within = (independent, _KNOWN) if variance.units < FEWEST_REPEATS else None
    error, freedom = _at_least(variance, independent, within)
    low, high = _levels(sqrt(error), _t_quantile(freedom, level))
    return Interval(estimate, *(None if q is None else float(np.quantile(values, q)) for q in (low, high)))


def mean(sample: Sample, level: float = LEVEL) -> Interval:
    """Mean with Student's t interval by the totals of units, as Cochran's ratio estimator has them."""
    estimate = float(np.mean(sample.values))
    variance = _variance(sample.values.astype(float), sample.units, estimate)
    if isnan(variance.value):
        return Interval(estimate, None, None)
    half = _t_quantile(variance.units - 1, level) * sqrt(variance.value)
    return Interval(estimate, estimate - half, estimate + half)


def mann_whitney(a: Sample, b: Sample) -> Test:
    """Mann and Whitney's test of the units' medians, of which each is one value; exact for few units without ties."""
    if min(a.count, b.count) < 1:
        return Test(None, None, None)
    least = least_p(a.count, b.count)
    from scipy.stats import mannwhitneyu

    answer = mannwhitneyu(b.medians, a.medians)
    # With ties scipy takes the normal distribution, which knows no least p.
    return Test(float(answer.statistic), None, max(float(answer.pvalue), least), least)


@dataclass(frozen=True)
class Share:
    """A share of losses of deliveries, with what its units say of how independent these are."""

    lost: int
    expected: int
    # Number of deliveries that carry the information of one independent delivery; at least 1.
    design_effect: float
    # Degrees of freedom of the design effect; None where it is not estimated.
    freedom: float | None
    variance: _Variance

    @classmethod
    def of(cls, lost: np.ndarray, units: np.ndarray, messages: int, blocks: np.ndarray | None = None) -> "Share":
        """Of whether each delivery was lost, its unit, the number of messages, and the block within the unit where units are whole runs.

        If nothing or everything was lost there is no variance: then a message's deliveries count as one.
        """
        expected, count = len(lost), int(np.count_nonzero(lost))
        share, values, units = count / expected, np.asarray(lost, dtype=float), _numbered(units)
        variance = _variance(values, units, share)
        within = None if blocks is None or variance.units >= FEWEST_REPEATS else _within(values, units, _numbered(blocks))
        if count in (0, expected) or isnan(variance.value):
            return cls(count, expected, max(expected / max(messages, 1), 1.0), None, variance)
        return cls(count, expected, *design_effect(share, expected, variance, within), variance)

    @classmethod
    def of_counts(cls, lost: np.ndarray, expected: np.ndarray, messages: int) -> "Share":
        """Of the counts of runs alone, and the number of messages. Within runs deliveries count as independent; internal/confidence does the same."""
        total, share = int(expected.sum()), lost.sum() / expected.sum()
        variance = _variance_of_totals(lost, expected, share)
        if share in (0, 1) or isnan(variance.value):
            return cls(int(lost.sum()), total, max(total / max(messages, 1), 1.0), None, variance)
        within = (0.0, _KNOWN) if variance.units < FEWEST_REPEATS else None
        return cls(int(lost.sum()), total, *design_effect(share, total, variance, within), variance)

    @property
    def value(self) -> float:
        """The share, between 0 and 1."""
        return self.lost / self.expected

    def interval(self, level: float = LEVEL) -> Interval:
        """Wilson's interval of the number of independent deliveries that have this variance.

        Rao and Scott, "A Simple Method for the Analysis of Clustered Binary Data", Biometrics 48 (1992); as the variance
        is estimated from few units, the number is reduced by (z/t)^2: Korn and Graubard, Survey Methodology 24 (1998).
        """
        from statistics import NormalDist

        few = 1.0 if self.freedom is None else (NormalDist().inv_cdf((1 + level) / 2) / _t_quantile(self.freedom, level)) ** 2
        effective = self.expected / self.design_effect * few
        return Interval(self.value, *wilson_interval(self.value * effective, effective, level))


def design_effect(share: float, expected: int, variance: _Variance, within: tuple[float, float] | None) -> tuple[float, float]:
    """The design effect of a share that is neither 0 nor 1, and its degrees of freedom.

    Fewer repeats than FEWEST_REPEATS cannot tell how far runs lie apart. There the variance within runs is taken as known (with its degrees
    of freedom), and only what the runs differ by beyond it counts as estimated from the runs: Satterthwaite's approximation.
    The same rule is in internal/confidence.
    """
    binomial = share * (1 - share) / expected
    value, freedom = _at_least(variance, binomial, within)
    return value / binomial, freedom


def _at_least(variance: _Variance, independent: float, within: tuple[float, float] | None) -> tuple[float, float]:
    """The variance with its degrees of freedom, and not less than that of independent values."""
    if within is None:
        return max(variance.value, independent), variance.units - 1
    known = max(within[0], independent)
    beyond = max(variance.value - known, 0.0)
    return known + beyond, (known + beyond) ** 2 / (known**2 / within[1] + beyond**2 / (variance.units - 1))


def _within(values: np.ndarray, runs: np.ndarray, blocks: np.ndarray) -> tuple[float, float]:
    """The variance of a mean by the blocks of runs, each about the mean of its own run, and its degrees of freedom."""
    parts = [_variance(values[runs == run], _numbered(blocks[runs == run]), values[runs == run].mean()) for run in range(int(runs.max()) + 1)]
    weights = np.bincount(runs) / len(runs)
    total = sum(part.value * weight**2 for part, weight in zip(parts, weights, strict=True) if part.units > 1)
    return total, max(sum(part.units - 1 for part in parts), 1)


def loss_difference(a: Share, b: Share, level: float = LEVEL) -> tuple[Interval, Test]:
    """Difference of the shares, b - a, with Newcombe's interval, and Welch's test that it is 0 by the units' totals."""
    first, second = a.interval(level), b.interval(level)
    return newcombe(first, second), _Difference(a.variance, b.variance).test(b.value - a.value)


def newcombe(a: Interval, b: Interval) -> Interval:
    """Interval of the difference b - a of two shares from Wilson's interval of each.

    Newcombe, "Interval Estimation for the Difference Between Independent Proportions", Statistics in Medicine 17 (1998),
    method 10.
    """
    difference = b.estimate - a.estimate
    low = difference - sqrt((b.estimate - b.low) ** 2 + (a.high - a.estimate) ** 2)
    high = difference + sqrt((b.high - b.estimate) ** 2 + (a.estimate - a.low) ** 2)
    return Interval(difference, low, high)


def holm(probabilities: list[float | None]) -> list[float | None]:
    """Adjust p for the number of tests: Holm, Scandinavian Journal of Statistics 6 (1979). A test that was not made does not count."""
    made = sorted((p, i) for i, p in enumerate(probabilities) if p is not None)
    adjusted: list[float | None] = [None] * len(probabilities)
    greatest = 0.0
    for rank, (p, i) in enumerate(made):
        greatest = max(greatest, min(1.0, p * (len(made) - rank)))
        adjusted[i] = greatest
    return adjusted
