"""Confidence intervals: of medians by the bootstrap, of means by Student's t corrected for skewness, of shares by Wilson's score.

All assume independent draws. Deliveries of a run are not quite independent: losses come in bursts, and delays in
queues. Repeated runs differ by more than the intervals say.
"""

import hashlib
from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

LEVEL = 0.95
# Resamples of a bootstrap. Their 2.5th percentile is then one between the true 2.2nd and 2.8th (two standard errors).
REPLICATES = 10_000
# Values whose moments are computed at once.
_PART = 1 << 20


def stream(*names: str) -> np.random.Generator:
    """A stream of random numbers that depends only on the names, such as a run's UID and a figure's name."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))


def median_interval(ordered: Sequence[float], random: np.random.Generator, level: float = LEVEL) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the median of values in ascending order, in their unit.

    Percentile interval: Efron, "Bootstrap Methods: Another Look at the Jackknife", Annals of Statistics 7 (1979), and Efron
    and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. None for so few values that even the whole of
    their range covers the median less often than the level asks, 1 - 2^(1-n): below 6 values for 95 %.
    """
    values = np.asarray(ordered)
    if _too_few(len(values), level):
        return None
    low, high = np.quantile(resampled_medians(values, random), ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def _too_few(count: int, level: float) -> bool:
    return 1 - 2.0 ** (1 - count) < level


def mean_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Student's t interval of the mean, corrected for the skewness of the values, in their unit. None where the median has none.

    Hall, "On the Removal of Skewness by Transformation", Journal of the Royal Statistical Society B 54 (1992), with quantiles of t. Delays have
    long tails: there the plain t interval covers the mean too seldom, as test_statistics shows. A percentile bootstrap covers
    it no more often.
    """
    n = len(values)
    if _too_few(n, level):
        return None
    from scipy.special import stdtrit

    mean = float(np.mean(values))
    square, cube = _central_moments(np.asarray(values), mean)
    if square == 0:
        return mean, mean
    skewness = cube / square**1.5 / sqrt(n)
    error, t = sqrt(square / (n - 1)), float(stdtrit(n - 1, (1 + level) / 2))
    return mean - error * _skewed(t, skewness), mean - error * _skewed(-t, skewness)


def from_zero(interval: tuple[float, float] | None, values: Sequence[float]) -> tuple[float, float] | None:
    """The part of an interval of durations that is not below 0. All of it where a value is negative, as clocks that differ make some."""
    return interval if interval is None or np.min(values) < 0 else (max(interval[0], 0.0), interval[1])


def repeats_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Student's t interval of the mean of independent repeats, such as the means of runs; None of fewer than two."""
    n = len(values)
    if n < 2:
        return None
    from scipy.special import stdtrit

    mean, half = float(np.mean(values)), float(stdtrit(n - 1, (1 + level) / 2)) * float(np.std(values, ddof=1)) / sqrt(n)
    return mean - half, mean + half


def _central_moments(values: np.ndarray, mean: float) -> tuple[float, float]:
    """The second and third moment about the mean, in parts, as a run may have millions of values."""
    square = cube = 0.0
    for first in range(0, len(values), _PART):
        off = values[first : first + _PART] - mean
        square += float(np.sum(off**2))
        cube += float(np.sum(off**3))
    return square / len(values), cube / len(values)


def _skewed(t: float, skewness: float) -> float:
    """Hall's monotone transformation of a quantile of t; skewness is divided by the square root of the number of values."""
    if abs(skewness) < 1e-9:
        return t
    return 3 / skewness * (float(np.cbrt(1 + skewness * (t - skewness / 6))) - 1)


def resampled_medians(ordered: np.ndarray, random: np.random.Generator, replicates: int = REPLICATES) -> np.ndarray:
    """Draw medians of bootstrap resamples of n values in ascending order, in a time that does not depend on n.

    A resample takes x[ceil(n U)] for n uniform U, so that its k-th smallest value is x[ceil(n U(k))], U(k) being the k-th
    smallest of n uniforms: of a Beta(k, n-k+1) distribution; and given U(k), (U(k+1) - U(k)) / (1 - U(k)) is Beta(1, n-k)
    (David and Nagaraja, "Order Statistics" (2003), sections 2.3 and 2.5). The medians have just the distribution of those of drawn resamples,
    which Maritz and Jarrett, "A Note on Estimating the Variance of the Sample Median", JASA 73 (1978), give in closed form for odd n.
    """
    n = len(ordered)
    middle = (n + 1) // 2
    lower = random.beta(middle, n - middle + 1, replicates)
    below = ordered[_rank(lower, n)].astype(float)
    if n % 2:
        return below
    upper = lower + (1 - lower) * random.beta(1, n - middle, replicates)
    return below + (ordered[_rank(upper, n)] - below) / 2


def _rank(uniform: np.ndarray, n: int) -> np.ndarray:
    # Counted from 0. The bound covers a uniform that was rounded to 1.
    return np.minimum((uniform * n).astype(np.int64), n - 1)


def wilson_interval(count: int, total: int, level: float = LEVEL) -> tuple[float, float] | None:
    """Score interval of the share count / total, between 0 and 1; None of nothing.

    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927); recommended also for few
    values and for shares near 0 and 1 by Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion", Statistical
    Science 16 (2001).
    """
    if not 0 <= count <= total:
        raise ValueError(f"count {count} of total {total}: want 0 <= count <= total")
    if not total:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = count / total, z * z / total
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * sqrt(share * (1 - share) / total + weight / (4 * total))
    # Exactly 0 and 1 in theory, and not quite after rounding.
    return (0.0 if count == 0 else max(centre - half, 0.0)), (1.0 if count == total else min(centre + half, 1.0))
