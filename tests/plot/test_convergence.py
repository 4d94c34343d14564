"""Pictures of how variational inference got where it is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from hylift.errors import UnsupportedError
from hylift.inference import BP, BVI, NPVI, Exact, MaxWalkSAT, infer
from hylift.plot import plot_convergence
from hylift.posterior import History, Posterior
from zoo import friends_and_smokers, toy_hybrid_mln


@pytest.fixture(scope="module")
def toy() -> Posterior:
    return infer(toy_hybrid_mln(), BVI(components=2))


@pytest.fixture(scope="module")
def by_levels(toy: Posterior) -> Posterior:
    """As if of a coarse-to-fine run with three levels."""
    history = History(
        seconds=np.array([0.1, 0.2, 0.3, 0.4, 0.5]),
        objective=np.array([5.0, 3.0, 2.0, 1.5, 1.0]),
        num_classes=np.array([2, 2, 7, 7, 30]),
        level=np.array([0, 0, 1, 1, 2], dtype=np.int32),
    )
    return replace(toy, solution=replace(toy.solution, history=history))


def test_a_posterior_is_a_line_of_its_objective_against_time(toy: Posterior) -> None:
    ax = plot_convergence(toy)

    history = toy.solution.history
    assert history is not None
    line = ax.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), history.seconds)
    np.testing.assert_array_equal(line.get_ydata(), history.objective)
    assert line.get_label() == "BVI(2)"
    assert ax.get_xlabel() == "seconds"
    assert ax.get_ylabel() == "objective (free energy)"
    assert ax.get_xscale() == "linear"


def test_a_mapping_gives_labels_and_lines_that_differ_without_colours(toy: Posterior) -> None:
    other = infer(toy_hybrid_mln(), NPVI(components=2))

    ax = plot_convergence({"Bethe": toy, "a $ sign": other})

    drawn = [line for line in ax.lines if line.get_label() in ("Bethe", "a $ sign")]
    assert len({line.get_color() for line in drawn}) == 2
    assert len({line.get_linestyle() for line in drawn}) == 2
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Bethe", "a $ sign"]


def test_rings_mark_where_levels_begin(by_levels: Posterior) -> None:
    ax = plot_convergence(by_levels)

    rings = ax.lines[1]
    assert list(rings.get_xdata()) == [0.3, 0.5]
    assert list(rings.get_ydata()) == [2.0, 1.0]
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["BVI(2)", "next level"]


def test_the_number_of_classes_has_an_axis_of_its_own(by_levels: Posterior) -> None:
    ax = plot_convergence(by_levels, classes=True)

    figure = ax.figure
    _, right = figure.axes
    assert list(right.lines[0].get_ydata()) == [2, 2, 7, 7, 30]
    assert right.get_ylabel() == "classes of variables (thin)"


def test_a_gap_is_measured_from_the_lowest_end(toy: Posterior, by_levels: Posterior) -> None:
    ax = plot_convergence({"toy": toy, "levels": by_levels}, gap=True, log_time=True)

    history = toy.solution.history
    assert history is not None
    levels = [line for line in ax.lines if line.get_label() == "levels"]
    lowest = history.objective[-1]  # about -13
    np.testing.assert_allclose(levels[0].get_ydata(), np.array([5, 3, 2, 1.5, 1]) - lowest)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_steps_at_the_lowest_end_or_below_it_lie_on_a_line_at_the_bottom(
    by_levels: Posterior,
) -> None:
    history = by_levels.solution.history
    assert history is not None
    flat = replace(history, objective=np.full(5, 1.0))
    dipping = replace(history, objective=np.array([3.0, 0.5, np.inf, 1.0 + 1e-9, 1.0]))
    runs = {
        label: replace(by_levels, solution=replace(by_levels.solution, history=each))
        for label, each in {"whole": history, "flat": flat, "dipping": dipping}.items()
    }

    ax = plot_convergence(runs, gap=True)

    heights = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.lines}
    np.testing.assert_allclose(heights["lowest end, or below"], 0.25)  # half the least, 1.5 - 1
    np.testing.assert_allclose(heights["whole"], [4, 2, 1, 0.5, 0.25])
    np.testing.assert_allclose(heights["flat"], 0.25)
    np.testing.assert_allclose(heights["dipping"], [2, 0.25, np.nan, 0.25, 0.25])
    low, high = ax.get_ylim()
    assert low < 0.25
    assert high > 4


def test_runs_that_begin_where_they_end_are_seen(by_levels: Posterior) -> None:
    history = by_levels.solution.history
    assert history is not None
    flat = replace(history, objective=np.full(5, -7.0))

    ax = plot_convergence(
        replace(by_levels, solution=replace(by_levels.solution, history=flat)), gap=True
    )

    low, high = ax.get_ylim()
    drawn = np.asarray(ax.lines[0].get_ydata())
    assert ((low < drawn) & (drawn < high)).all()


@pytest.mark.parametrize("width", [2.5, 3.5, 6.4])
@pytest.mark.parametrize(
    ("first", "last"),
    [(0.02, 0.2), (1e-3, 1e3), (0.031, 0.055), (0.02, 0.95), (0.1, 0.104), (3e-5, 40), (1e-7, 1e4)],
)
def test_labels_of_logarithmic_time_keep_apart(
    by_levels: Posterior, first: float, last: float, width: float
) -> None:
    history = by_levels.solution.history
    assert history is not None
    times = replace(history, seconds=np.geomspace(first, last, len(history)))
    timed = replace(by_levels, solution=replace(by_levels.solution, history=times))
    figure = Figure(figsize=(width, 2.0), layout="constrained")

    ax = plot_convergence(timed, ax=figure.add_subplot(), log_time=True)

    figure.draw_without_rendering()
    low, high = ax.get_xlim()
    shown = [
        label
        for label in [*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)]
        if label.get_text() and low <= label.get_position()[0] <= high
    ]
    boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_logarithmic_time_is_labelled_with_plain_numbers(by_levels: Posterior) -> None:
    ax = plot_convergence(by_levels, log_time=True)

    ax.figure.draw_without_rendering()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "0.2", "0.5"]


def test_what_came_without_steps_is_a_point(toy: Posterior) -> None:
    none = np.zeros(0)
    empty = History(none, none, none.astype(np.int64), none.astype(np.int32))
    solution = replace(toy.solution, history=empty)

    ax = plot_convergence(replace(toy, solution=solution))

    line = ax.lines[0]
    assert line.get_marker() == "o"
    assert list(line.get_ydata()) == [solution.objective]


def test_axes_that_are_given_are_drawn_in(toy: Posterior) -> None:
    ax = Figure().add_subplot()

    assert plot_convergence(toy, ax=ax) is ax
    assert ax.lines


@pytest.mark.parametrize("name", ["way.png", "way.pdf", "way.svg"])
def test_a_figure_is_written(name: str, toy: Posterior, tmp_path: Path) -> None:
    plot_convergence(toy, path=tmp_path / name)

    assert (tmp_path / name).stat().st_size > 0


def test_belief_propagation_is_drawn_by_its_largest_change() -> None:
    found = infer(friends_and_smokers(), BP())

    ax = plot_convergence(found)

    assert ax.get_ylabel() == "largest change of a message"
    assert ax.get_yscale() == "log"


def test_a_search_is_drawn_by_its_best_energy() -> None:
    found = infer(toy_hybrid_mln(), MaxWalkSAT(flips=100), tasks="map")

    ax = plot_convergence(found)

    assert ax.get_ylabel() == "energy"
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(found.map().energy, abs=1e-9)


def test_different_measures_are_objectives(toy: Posterior) -> None:
    search = infer(toy_hybrid_mln(), MaxWalkSAT(flips=100), tasks="map")

    ax = plot_convergence({"BVI": toy, "search": search})

    assert ax.get_ylabel() == "objective"


def test_what_takes_no_steps_is_refused() -> None:
    exact = infer(toy_hybrid_mln(), Exact())

    with pytest.raises(UnsupportedError) as refused:
        plot_convergence({"truth": exact})

    assert str(refused.value) == (
        "'truth' took no steps that could be drawn: its method is 'exact'. Variational "
        "methods, belief propagation and MaxWalkSAT take some"
    )


@pytest.mark.parametrize("wrong", [[], "BVI", 3, {"a": 1}])
def test_what_is_no_posterior_is_refused(wrong: object) -> None:
    with pytest.raises(UnsupportedError) as refused:
        plot_convergence(wrong)  # type: ignore[arg-type]

    assert str(refused.value) == (
        "plot_convergence draws a posterior, or several as a mapping: {'BVI': posterior, …}"
    )


def test_no_posteriors_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="draws 1 to 12 posteriors, not 0"):
        plot_convergence({})
