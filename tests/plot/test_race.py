"""Pictures of a race."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Annotation

from hylift.errors import UnsupportedError
from hylift.plot import plot_race
from hylift.posterior import Comparison, History, LogPartition
from hylift.racing import Finish, Race, race
from zoo import toy_hybrid_mln

METHODS = ["exact", "mean-field", "bvi", "npvi"]


@pytest.fixture(scope="module")
def toy() -> Race:
    return race(toy_hybrid_mln(), METHODS, seconds=10.0)


def labels(ax: Axes) -> list[str]:
    return [child.get_text() for child in ax.get_children() if isinstance(child, Annotation)]


def marks(ax: Axes) -> list[tuple[float, float, str]]:
    """Time, height and marker of each."""
    found = [line for line in ax.lines if line.get_marker() not in ("None", "", None)]
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]), str(line.get_marker()))
        for line in found
    ]


def test_there_is_a_panel_for_marginals_one_for_map_and_one_for_log_z(toy: Race) -> None:
    axes = plot_race(toy)

    assert [ax.get_ylabel() for ax in axes] == [
        "mean KL of marginals",
        "MAP energy\nabove the best",
        "log Z",
    ]
    assert [ax.get_xscale() for ax in axes] == ["log"] * 3
    assert [ax.get_yscale() for ax in axes] == ["log", "symlog", "linear"]
    assert axes[-1].get_xlabel() == "seconds"


def test_every_method_but_the_yardstick_has_a_mark_of_its_divergence(toy: Race) -> None:
    ax = plot_race(toy)[0]

    others = [one for one in toy if one.label != "exact"]
    assert labels(ax) == [one.label for one in others]
    assert [mark[:2] for mark in marks(ax)] == [(one.seconds, one.mean_kl) for one in others]
    assert ax.get_title(loc="left") == "from exact (exact inference), whose time is dotted"


def test_bounds_are_told_from_estimates_and_the_exact_value(toy: Race) -> None:
    ax = plot_race(toy)[2]

    markers = dict(zip(labels(ax), (mark[2] for mark in marks(ax)), strict=True))
    assert markers == {"exact": "D", "mean field": "^", "BVI(3)": "o", "NPVI(3)": "^"}
    assert ax.get_title(loc="left").startswith("exact: 13.344035 (dotted); triangles are bounds")


def test_variational_methods_have_a_curve_of_their_bound(toy: Race) -> None:
    ax = plot_race(toy)[2]

    history = toy["BVI(3)"].posterior.solution.history
    assert history is not None
    curves = [line for line in ax.lines if len(line.get_xdata()) == len(history)]
    np.testing.assert_array_equal(curves[0].get_ydata(), -history.objective)


def test_energies_stand_above_the_best_one(toy: Race) -> None:
    worse = toy["mean field"]
    assert worse.energy is not None
    changed = with_energy(worse, worse.energy + 2.5)
    finishes = tuple(changed if one is worse else one for one in toy)

    ax = plot_race(replace(toy, finishes=finishes))[1]

    heights = dict(zip(labels(ax), (mark[1] for mark in marks(ax)), strict=True))
    assert heights["exact"] == 0.0
    assert heights["mean field"] == pytest.approx(2.5, abs=1e-9)
    assert ax.get_title(loc="left") == "best energy found: -0.4"


def with_energy(found: Finish, energy: float) -> Finish:
    assert found.posterior.assignment is not None
    assignment = replace(found.posterior.assignment, energy=energy)
    return replace(found, posterior=replace(found.posterior, assignment=assignment))


def test_infinite_energies_stand_on_the_upper_edge(toy: Race) -> None:
    energies = {"mean field": np.inf, "BVI(3)": 2.0}
    finishes = tuple(
        with_energy(one, energies[one.label]) if one.label in energies else one for one in toy
    )

    ax = plot_race(replace(toy, finishes=finishes))[1]

    heights = dict(zip(labels(ax), (mark[1] for mark in marks(ax)), strict=True))
    assert heights["exact"] == 0.0
    assert heights["BVI(3)"] == pytest.approx(2.4, abs=1e-9)
    assert heights["mean field"] == pytest.approx(ax.get_ylim()[1])


def test_energies_that_are_all_infinite_are_not_drawn(toy: Race) -> None:
    finishes = tuple(with_energy(one, np.inf) for one in toy)

    axes = plot_race(replace(toy, finishes=finishes))

    assert [ax.get_ylabel() for ax in axes] == ["mean KL of marginals", "log Z"]


def test_a_search_that_begins_where_nothing_is_possible_has_a_curve_from_then_on(
    toy: Race,
) -> None:
    found = toy["mean field"]
    history = History(
        np.array([0.1, 0.2, 0.3]), np.array([np.inf, 7.0, 1.0]),
        np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int32), "energy",
    )  # fmt: skip
    solution = replace(found.posterior.solution, history=history)
    searched = replace(found, label="search", posterior=replace(found.posterior, solution=solution))

    ax = plot_race(replace(toy, finishes=(*toy.finishes, searched)))[1]

    curve = next(line for line in ax.lines if list(line.get_xdata()) == [0.2, 0.3])
    np.testing.assert_allclose(curve.get_ydata(), np.array([7.4, 1.4]), atol=1e-9)


def test_a_search_for_an_assignment_has_a_curve_of_energies(toy: Race) -> None:
    found = toy["mean field"]
    history = History(
        np.array([0.1, 0.2, 0.3]), np.array([5.0, 7.0, 1.0]),
        np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int32), "energy",
    )  # fmt: skip
    posterior = replace(
        found.posterior,
        all_marginals=None,
        log_partition=None,
        mixture=None,
        solution=replace(found.posterior.solution, history=history),
    )
    searched = replace(found, label="search", posterior=posterior, comparison=None)

    ax = plot_race(replace(toy, finishes=(*toy.finishes, searched)))[1]

    curve = next(line for line in ax.lines if len(line.get_xdata()) == 3)
    np.testing.assert_allclose(curve.get_ydata(), np.array([5.4, 5.4, 1.4]), atol=1e-9)


def test_labels_do_not_cover_each_other(toy: Race) -> None:
    axes = plot_race(toy)

    renderer = FigureCanvasAgg(axes[0].figure).get_renderer()
    for ax in axes:
        texts = [child for child in ax.get_children() if isinstance(child, Annotation)]
        boxes = [text.get_window_extent(renderer) for text in texts]
        for place, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:place])


def test_infinite_and_vanishing_divergences_stand_at_the_edges(toy: Race) -> None:
    far, near = toy["mean field"], toy["BVI(3)"]
    assert far.comparison is not None
    ids, size = far.comparison.ids, len(far.comparison)
    variables = far.comparison.variables
    changed = {
        "mean field": Comparison(variables, ids, np.full(size, np.inf), np.ones(size)),
        "BVI(3)": Comparison(variables, ids, np.zeros(size), np.zeros(size)),
    }
    finishes = tuple(replace(one, comparison=changed.get(one.label, one.comparison)) for one in toy)

    ax = plot_race(replace(toy, finishes=finishes))[0]

    heights = dict(zip(labels(ax), (mark[1] for mark in marks(ax)), strict=True))
    assert heights["mean field"] == pytest.approx(ax.get_ylim()[1])
    assert heights[near.label] == 1e-16


def test_panels_without_anything_are_left_out(toy: Race) -> None:
    found = toy["NPVI(3)"]
    posterior = replace(found.posterior, assignment=None)
    alone = replace(found, posterior=posterior, comparison=None)

    axes = plot_race(Race((alone,), (), None, 1.0))

    assert [ax.get_ylabel() for ax in axes] == ["log Z"]


def test_a_race_without_answers_is_refused(toy: Race) -> None:
    found = toy["NPVI(3)"]
    posterior = replace(
        found.posterior, assignment=None, log_partition=LogPartition(np.nan, "estimate")
    )
    empty = Race((replace(found, posterior=posterior, comparison=None),), (), None, 1.0)

    with pytest.raises(UnsupportedError, match="has anything that could be drawn"):
        plot_race(empty)
    with pytest.raises(UnsupportedError, match="plot_race draws what race"):
        plot_race("race")  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_the_picture_is_written(toy: Race, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"race.{ending}"

    plot_race(toy, path=path)

    assert path.stat().st_size > 1000


def test_other_endings_are_refused_before_any_work(toy: Race, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"a figure's name ends in \.png, \.pdf, \.svg"):
        plot_race(toy, path=tmp_path / "race.txt")


def test_methods_have_the_same_colors_in_all_pictures(toy: Race) -> None:
    whole = plot_race(toy)[0]
    fewer = replace(toy, finishes=tuple(one for one in toy.finishes if one.label != "mean field"))

    part = plot_race(fewer)[0]

    def color_of(ax: Axes, label: str) -> str:
        shown = [one.label for one in toy if one.mean_kl is not None]
        shown = [name for name in shown if name in labels(ax)]
        marked = [line for line in ax.lines if line.get_marker() not in ("", "None", None)]
        return str(marked[shown.index(label)].get_color())

    kept = next(name for name in labels(part) if name in labels(whole))
    assert color_of(part, kept) == color_of(whole, kept)
