"""Effect sizes and tests of comparisons, held against published figures, scipy, and plain definitions."""

import json
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vignette_analysis.comparison import effects
from vignette_analysis.comparison.effects import Interval, Sample, Share
from vignette_analysis.figures.statistics import wilson_interval


def alone(values) -> Sample:
    """Each value is a unit of its own."""
    return Sample.of(np.array(values), np.arange(len(values)))


# Pain scores after surgery: Brunner and Munzel (2000), section 5.
SMOOTH = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 1, 1]
ROUGH = [3, 3, 4, 3, 1, 2, 3, 1, 1, 5, 4]


def test_brunner_and_munzels_own_example():
    # As R's lawstat::brunner.munzel.test prints it.
    delta, test = effects.brunner_munzel(alone(SMOOTH), alone(ROUGH))
    assert test.statistic == pytest.approx(3.1375, abs=5e-5)
    assert test.degrees_of_freedom == pytest.approx(17.683, abs=5e-4)
    assert test.p == pytest.approx(0.005786, abs=5e-7)
    assert [(x + 1) / 2 for x in (delta.estimate, delta.low, delta.high)] == pytest.approx([0.788961, 0.5952169, 0.9827052], abs=5e-7)


values = st.lists(st.integers(-(10**12), 10**12), min_size=2, max_size=40)
few_values = st.lists(st.integers(0, 6), min_size=2, max_size=30)


@given(few_values, few_values)
def test_with_units_of_one_value_the_test_is_scipys(a, b):
    _, test = effects.brunner_munzel(alone(a), alone(b))
    if test.statistic is not None:
        want = stats.brunnermunzel(a, b)
        assert test.statistic == pytest.approx(want.statistic, abs=1e-9)
        least = effects._Difference(effects._Variance(0, len(a)), effects._Variance(0, len(b))).least_p
        assert test.p == pytest.approx(max(want.pvalue, min(least, 1)), abs=1e-9)


@given(values, values)
def test_delta_is_the_share_of_pairs_and_changes_its_sign_with_the_order(a, b):
    delta, test = effects.brunner_munzel(alone(a), alone(b))
    assert delta.estimate == pytest.approx(np.mean(np.sign(np.subtract.outer(b, a))), abs=1e-12)
    back, other = effects.brunner_munzel(alone(b), alone(a))
    assert back.estimate == pytest.approx(-delta.estimate) and other.p == pytest.approx(test.p, abs=1e-9)
    assert (back.low, back.high) == (pytest.approx(-delta.high, abs=1e-9), pytest.approx(-delta.low, abs=1e-9))
    assert -1 <= delta.low <= delta.estimate <= delta.high <= 1


@given(few_values, few_values, st.data())
def test_delta_and_its_test_do_not_see_a_change_of_scale_that_keeps_the_order(a, b, data):
    units = [np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(x), max_size=len(x)))) for x in (a, b)]
    plain = [Sample.of(np.array(x), u) for x, u in zip((a, b), units, strict=True)]
    bent = [Sample.of(np.exp2(6 * np.array(x)).astype(np.int64), u) for x, u in zip((a, b), units, strict=True)]
    assert effects.brunner_munzel(*plain) == effects.brunner_munzel(*bent)


@given(values, values)
def test_the_shift_is_the_median_of_all_differences_and_changes_its_sign_with_the_order(a, b):
    found = effects.shift(alone(a), alone(b))
    assert found.estimate == pytest.approx(np.median(np.subtract.outer(b, a)), rel=1e-12, abs=1e-6)
    assert effects.shift(alone(b), alone(a)).estimate == pytest.approx(-found.estimate, rel=1e-12, abs=1e-6)
    if found.low is not None:
        assert found.low <= found.estimate <= found.high


@given(values, values, st.integers(-(10**9), 10**9), st.integers(1, 1000))
def test_the_shift_moves_with_a_constant_and_grows_with_the_scale(a, b, constant, factor):
    plain, moved = effects.shift(alone(a), alone(b)), effects.shift(alone(a), alone(np.array(b) + constant))
    assert moved.estimate == pytest.approx(plain.estimate + constant, rel=1e-12, abs=1e-6)
    scaled = effects.shift(alone(np.array(a) * factor), alone(np.array(b) * factor))
    assert scaled.estimate == pytest.approx(plain.estimate * factor, rel=1e-12, abs=1e-6)


@given(few_values, few_values, st.floats(0, 1), st.sampled_from((1, 10, 1000)))
def test_quantiles_of_differences_are_those_of_all_differences(a, b, level, few):
    with mock.patch.object(effects, "_FEW", few):
        got = effects.difference_quantile(np.sort(a), np.sort(b), level)
    assert got == pytest.approx(np.quantile(np.subtract.outer(b, a), level), abs=1e-6)


def test_large_samples_are_thinned_unit_by_unit_and_give_nearly_the_same():
    random = np.random.default_rng(8)
    units = np.repeat(np.arange(40, dtype=np.uint16), 10_000)
    first, second = (Sample.of((random.lognormal(0, 1, len(units)) * scale).astype(np.int64), units) for scale in (1e7, 1.1e7))
    assert [len(sample.thinned().values) for sample in (first, second)] == [50_000] * 2 and first.thinned().medians is first.medians
    found = effects.shift(first, second), *effects.brunner_munzel(first, second)
    with mock.patch.object(effects, "MAX_PLACED", 10**9):
        exact = effects.shift(first, second), *effects.brunner_munzel(first, second)
    assert found[0].estimate == exact[0].estimate
    for name in ("estimate", "low", "high"):
        assert getattr(found[1], name) == pytest.approx(getattr(exact[1], name), abs=2e-4)
    assert found[2].p == pytest.approx(exact[2].p, rel=0.02)


def test_a_unit_of_few_values_is_thinned_to_one():
    sample = Sample.of(np.arange(100_001), np.r_[np.zeros(100_000), 1].astype(np.uint16))
    assert sample.thinned().count == 2 and sample.thinned().values[-1] == 100_000


def test_hollander_and_wolfes_permeabilities():
    # Hollander and Wolfe, "Nonparametric Statistical Methods" (1973), example 4.1; also in R's help of wilcox.test: W = 35.
    term = [80, 83, 189, 104, 145, 138, 191, 164, 73, 146]
    early = [115, 88, 90, 74, 121]
    test = effects.mann_whitney(alone(early), alone(term))
    assert (test.statistic, test.p) == (35, pytest.approx(0.2544, abs=5e-5))
    assert effects.shift(alone(early), alone(term)).estimate / 100 == pytest.approx(0.305)


def test_no_p_is_below_that_of_the_best_permutation_even_with_ties():
    test = effects.mann_whitney(alone([1, 1, 1]), alone([2, 2, 2]))
    assert test.p == test.least_p == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0000),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombes_own_table(a, b, low, high):
    # Newcombe (1998), table II, method 10; his difference is a - b.
    shares = [Interval(count / total, *wilson_interval(count, total)) for count, total in (b, a)]
    got = effects.newcombe(*shares)
    assert (got.low, got.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_holm_as_r_adjusts():
    assert effects.holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert effects.holm([0.5, None, 0.001, 0.9]) == [pytest.approx(1.0), None, pytest.approx(0.003), 1.0]


def correlated(random, blocks: int, each: int, spread: float) -> Sample:
    """Values whose units have levels of their own."""
    levels = np.repeat(random.normal(0, spread, blocks), each)
    values = np.exp(levels + random.normal(0, 0.3, blocks * each)) * 1e8
    return Sample.of(values.astype(np.int64), np.repeat(np.arange(blocks), each))


def test_equal_runs_with_dependent_messages_differ_as_rarely_as_the_level_says():
    random = np.random.default_rng(1)
    found = naive = covered = 0
    trials = 100
    for _ in range(trials):
        a, b = correlated(random, 24, 50, 0.5), correlated(random, 24, 50, 0.5)
        found += effects.brunner_munzel(a, b)[1].p < 0.05
        covered += (s := effects.shift(a, b)).low <= 0 <= s.high
        naive += effects.brunner_munzel(alone(a.values), alone(b.values))[1].p < 0.05
    # Three standard errors of 5 % of 100 are 6.5 %; taken for independent, the same messages make most runs "differ".
    assert found / trials < 0.115 and covered / trials > 0.885
    assert naive / trials > 0.5


def test_the_interval_of_a_shift_covers_the_shift_of_runs_with_unequal_variances():
    random = np.random.default_rng(2)
    covered = 0
    for _ in range(100):
        a, b = correlated(random, 16, 30, 0.2), correlated(random, 30, 20, 0.6)
        interval = effects.shift(a, Sample(b.values + 50_000_000, b.units))
        covered += interval.low <= 50_000_000 <= interval.high
    assert covered > 88


def test_of_samples_that_do_not_overlap_p_is_that_of_the_permutations_of_units():
    a = Sample.of(np.arange(1000), np.repeat(np.arange(4), 250))
    b = Sample.of(np.arange(1000) + 5000, np.repeat(np.arange(4), 250))
    delta, test = effects.brunner_munzel(a, b)
    assert test.p == pytest.approx(2 / 70) and test.statistic is None
    assert (delta.estimate, delta.high) == (1, 1) and 0 < delta.low < 0.9
    mirrored, _ = effects.brunner_munzel(b, a)
    assert (mirrored.low, mirrored.high) == (-1, pytest.approx(-delta.low))


def test_one_unit_has_estimates_and_no_intervals():
    one = Sample.of(np.array([1, 2, 3]), np.zeros(3))
    delta, test = effects.brunner_munzel(one, one)
    assert delta == Interval(0, None, None) and test.p is None
    assert effects.shift(one, one) == Interval(0, None, None) == Interval(effects.median(one).estimate - 2, None, None)


def test_losses_in_bursts_are_worth_fewer_deliveries():
    independent = Share.of(np.arange(1000) % 10 == 0, np.arange(1000) // 25, 1000)
    burst = Share.of(np.arange(1000) < 100, np.arange(1000) // 25, 1000)
    assert independent.design_effect == 1 and burst.design_effect > 20
    narrow, wide = independent.interval(), burst.interval()
    assert narrow.estimate == wide.estimate == 0.1 and wide.high - wide.low > 3 * (narrow.high - narrow.low)
    difference, test = effects.loss_difference(independent, burst)
    assert difference.estimate == 0 and test.p == pytest.approx(1)


def test_the_interval_of_a_difference_of_losses_covers_it_and_equal_losses_rarely_differ():
    random = np.random.default_rng(3)
    units, trials = np.arange(2000) // 80, 100
    covered = found = differing = 0
    for _ in range(trials):
        few, more, again = (Share.of(random.random(2000) < p, units, 2000) for p in (0.01, 0.1, 0.01))
        difference, test = effects.loss_difference(few, more)
        covered += difference.low < 0.09 < difference.high
        found += test.p < 1e-6
        differing += effects.loss_difference(few, again)[1].p < 0.05
    # Three standard errors of 5 of 100 are 6.5.
    assert covered > 88 and differing < 12 and found == trials


@given(st.integers(0, 50), st.integers(0, 50))
def test_the_difference_of_losses_changes_its_sign_with_the_order(first, second):
    a, b = (Share.of(np.arange(50) < count, np.arange(50) // 5, 50) for count in (first, second))
    forth, back = effects.loss_difference(a, b)[0], effects.loss_difference(b, a)[0]
    assert (forth.low, forth.high) == (pytest.approx(-back.high), pytest.approx(-back.low))
    assert -1 <= forth.low <= forth.estimate <= forth.high <= 1


def test_nothing_lost_still_has_an_upper_limit_by_messages():
    share = Share.of(np.zeros(700, dtype=bool), np.arange(700) // 70, 100)
    assert share.design_effect == 7 and 0.03 < share.interval().high < 0.06 and share.interval().low == 0


def repeats(counts: list[int], each: int, blocks: int = 8) -> Share:
    """Runs that lost so many of the same number of deliveries, evenly over their blocks."""
    lost = np.concatenate([np.arange(each) * count // each != (np.arange(each) + 1) * count // each for count in counts])
    block = np.tile(np.arange(each) * blocks // each, len(counts))
    return Share.of(lost, np.repeat(np.arange(len(counts)), each), len(lost), block if len(counts) > 1 else None)


@pytest.mark.parametrize("count", [0, 58])
def test_repeats_that_lost_nothing_or_all_are_not_known_less_well_than_one_of_them(count):
    widths = [(i := repeats([count] * k, 58).interval()).high - i.low for k in (1, 2, 3, 5, 10)]
    assert widths == sorted(widths, reverse=True) and widths[0] < 0.07


def test_one_loss_in_two_repeats_tells_nearly_as_much_as_none():
    assert repeats([0, 1], 58).interval().high < 0.06


def test_two_repeats_that_differ_much_are_known_badly():
    alike, apart = repeats([100, 100], 1000).interval(), repeats([20, 180], 1000).interval()
    assert alike.high - alike.low < 0.05 and apart.high - apart.low > 0.3


SHARES = Path(__file__).parents[2] / "internal" / "confidence" / "testdata" / "shares.json"


def of_counts(runs: list[dict]) -> Interval:
    """The interval of a share by the counts of runs alone, as the command line has it."""
    received, offered, messages = (np.array([run[key] for run in runs]) for key in ("received", "offered", "messages"))
    return Share.of_counts(received, offered, int(messages.sum())).interval()


def test_the_command_line_has_the_same_rule(request):
    cases = json.loads(SHARES.read_text())
    for case in cases:
        found = of_counts(case["runs"])
        want = {"low": round(found.low, 9), "high": round(found.high, 9)}
        if request.config.getoption("--update"):
            case |= want
        assert {key: case[key] for key in want} == pytest.approx(want, abs=1e-8), case["name"]
    SHARES.write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n") if request.config.getoption("--update") else None


def coverage(runs: int, share: float, correlation: float, each: int = 320, blocks: int = 16, trials: int = 500) -> float:
    """How many intervals of the share lost contain it, where runs' shares are of a beta distribution of this intra-cluster correlation."""
    random = np.random.default_rng([runs, int(1000 * share), int(1000 * correlation)])
    spread = (1 - correlation) / correlation if correlation else None
    unit, block = np.repeat(np.arange(runs), each), np.tile(np.arange(each) * blocks // each, runs)
    covered = 0
    for _ in range(trials):
        shares = random.beta(share * spread, (1 - share) * spread, runs) if spread and share else np.full(runs, share)
        found = Share.of(random.random(runs * each) < np.repeat(shares, each), unit, runs * each, block).interval()
        covered += found.low <= share <= found.high
    return covered / trials


CORRELATIONS = (0, 0.01, 0.05, 0.2)


@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.5])
@pytest.mark.parametrize("runs", [5, 10])
def test_the_interval_of_a_share_covers_it_where_the_correlation_can_be_estimated(runs, share):
    """That is: the losses are worth more than five independent ones (docs/reference/comparison.md)."""
    known = [c for c in CORRELATIONS if not share or runs * 320 * share / (1 + 319 * c) > 5]
    assert known
    for correlation in known:
        assert coverage(runs, share, correlation) >= 0.93, correlation


@pytest.mark.parametrize("runs", [2, 3])
def test_with_two_or_three_repeats_the_interval_covers_what_the_repeats_show(runs):
    """It holds where runs do not differ. Where they do, it covers less often than it says: the results note that."""
    assert min(coverage(runs, share, 0, trials=200) for share in (0, 0.01, 0.1, 0.5)) >= 0.93
    assert 0.75 < min(coverage(runs, share, c, trials=200) for share in (0.1, 0.5) for c in CORRELATIONS) < 0.93


@given(st.lists(st.integers(0, 100), min_size=2, max_size=200))
def test_the_median_of_independent_values_is_numpys(some):
    found = effects.median(alone(some))
    assert found.estimate == np.median(some)
    if found.low is not None:
        assert found.low <= found.estimate <= found.high


def test_the_median_s_interval_covers_the_median():
    random = np.random.default_rng(4)
    covered = sum((i := effects.median(correlated(random, 24, 20, 0.4))).low <= 1e8 <= i.high for _ in range(100))
    assert covered > 88


def agreeing(repeats: int) -> Sample:
    """Repeats of 18 values each that have the same ranks in sum, and equally many below the median of all."""
    return Sample.of(np.arange(18 * repeats), np.tile(np.r_[:repeats, repeats - 1 : -1 : -1], 9))


@pytest.mark.parametrize("repeats", [2, 6])
def test_repeats_that_agree_by_chance_do_not_tell_the_median_exactly(repeats):
    median = effects.median(agreeing(repeats))
    assert median.high - median.low > 10


@pytest.mark.parametrize("repeats", [2, 3])
def test_the_median_s_interval_covers_the_median_of_few_repeats_that_do_not_differ(repeats):
    random, units = np.random.default_rng(5), np.arange(18 * repeats) // 18
    found = [effects.median(Sample.of((random.lognormal(0, 0.5, len(units)) * 1e8).astype(np.int64), units)) for _ in range(300)]
    known = [i for i in found if i.low is not None]
    assert len(known) > 200 and sum(i.low <= 1e8 <= i.high for i in known) / len(known) > 0.9


@pytest.mark.parametrize("repeats", [2, 6])
def test_repeats_that_agree_by_chance_do_not_tell_a_shift_exactly(repeats):
    a = agreeing(repeats)
    shift, (delta, _) = effects.shift(a, Sample(a.values + 3, a.units)), effects.brunner_munzel(a, a)
    assert shift.estimate == 3 and shift.high - shift.low > 15
    assert delta.estimate == pytest.approx(0) and delta.high - delta.low > 0.2


def test_values_that_are_all_equal_have_one_median_and_one_shift():
    a, b = (Sample.of(np.full(36, value), np.arange(36) % 2) for value in (5, 7))
    assert effects.median(a) == Interval(5, 5, 5) and effects.shift(a, b) == Interval(2, 2, 2)


def test_the_mean_of_independent_values_has_students_interval():
    values = np.array([3, 5, 4, 8, 100, 7, 6, 2])
    found = effects.mean(alone(values))
    expected = stats.t.interval(0.95, 7, values.mean(), stats.sem(values))
    assert (found.estimate, found.low, found.high) == pytest.approx((values.mean(), *expected), rel=1e-12)


def test_the_mean_s_interval_covers_the_mean_of_dependent_values():
    random, true_mean = np.random.default_rng(20), np.exp((0.4**2 + 0.3**2) / 2) * 1e8
    covered = sum((i := effects.mean(correlated(random, 24, 20, 0.4))).low <= true_mean <= i.high for _ in range(200))
    assert covered >= 180


def test_units_medians():
    sample = Sample.of(np.array([9, 1, 4, 2, 8]), np.array([1, 0, 0, 0, 1]))
    assert sample.medians.tolist() == [2, 8.5]
