"""Pictures of lifted graphs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from experiments.instances import toy
from hylift.errors import UnsupportedError
from hylift.files import OutputError
from hylift.graph import FactorGraph, FactorGroup, boolean
from hylift.lifting import lift
from hylift.plot import plot_classes
from hylift.plot.class_graph import MAX_SQUARES, ClassGraph
from hylift.plot.class_layout import layout
from hylift.potentials import Table
from zoo import ZOO, ZooModel, friends_and_smokers, relational_gaussian_model, toy_hybrid_mln


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


def circles(ax: Axes) -> Any:
    """What was drawn last of the two sets of markers."""
    return ax.collections[1]


def boxes(ax: Axes) -> list[Any]:
    """What the labels cover, in pixels."""
    figure: Any = ax.get_figure()
    figure.draw_without_rendering()
    return [text.get_window_extent() for text in ax.texts if text.get_text()]


def test_every_class_is_a_circle_with_its_predicate_and_size() -> None:
    ax = plot_classes(lift(toy_hybrid_mln()))

    labels = ["AInBox\n×4", "BInBox\n×6", "attractedTo\n×6", "posA\n×2", "posB\n×3"]
    assert texts(ax) == [*labels, "×12", "×6", "×6"]
    assert ax.get_title(loc="left") == "21 variables in 5 classes, 24 factors in 3"
    colors = {to_hex(color) for color in circles(ax).get_facecolors()}
    assert len(colors) == 5
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["AInBox", "BInBox", "attractedTo", "posA", "posB", "factors"]


def test_classes_of_one_predicate_are_named_after_a_member() -> None:
    graph = relational_gaussian_model().observe({"market(c0)": 3.0})

    ax = plot_classes(lift(graph))

    named = [text.partition("\n")[0] for text in texts(ax)]
    assert {"loss(c0,b0)", "loss(c1,b0)", "market", "revenue", "recession"} <= set(named)


def test_the_area_grows_with_the_logarithm_of_the_size() -> None:
    sizes = {}
    for count in (10, 100, 1000):
        graph = FactorGraph.build({f"x({i})": boolean for i in range(count)}, [])
        sizes[count] = float(circles(plot_classes(lift(graph))).get_sizes()[0])

    assert sizes[100] - sizes[10] == pytest.approx(sizes[1000] - sizes[100])
    assert sizes[100] > sizes[10]


def test_a_class_in_two_slots_is_joined_by_a_double_line() -> None:
    ax = plot_classes(lift(friends_and_smokers(4)))

    doubled = [line for line in ax.lines if line.get_color() == "white"]
    assert len(doubled) == 1


def test_a_class_in_many_slots_is_said_to_be() -> None:
    names = [f"votes({i})" for i in range(5)]
    agree = Table.shared(np.add.outer(np.add.outer([0, 1], [0, 1]), [0, 1]) * 0.3)
    scopes = [list(scope) for scope in itertools.combinations(names, 3)]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), [(agree, scopes)])

    ax = plot_classes(lift(graph))

    assert texts(ax) == ["votes\n×5", "×10, 3 slots"]


def test_names_are_shown_as_they_are() -> None:
    table = Table.shared([[0.1, 0.2], [0.3, 0.9]])
    graph = FactorGraph.build(
        {"price($_a^{)": boolean, "_x(a)": boolean}, [(table, ["price($_a^{)", "_x(a)"])]
    )

    ax = plot_classes(lift(graph))

    assert texts(ax) == ["price($_a^{)", "_x(a)"]
    assert len(boxes(ax)) == 2  # nothing is read as a formula when it is drawn


def test_large_classes_are_drawn_first() -> None:
    rng = np.random.default_rng(0)
    names = [f"x({i})" for i in range(60)]
    tables = Table(rng.normal(size=(30, 2)))
    single = [[name] for name in names[:30]]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), [(tables, single)])

    ax = plot_classes(lift(graph), max_classes=5)

    assert len(circles(ax).get_offsets()) == 5
    assert texts(ax)[-1] == "x(30)\n×30"
    title = ax.get_title(loc="left").splitlines()
    assert title == [
        "60 variables in 31 classes, 30 factors in 30",
        "5 classes shown; 26 others and 26 classes of factors are left out",
    ]


def hub_and_pairs(num_pairs: int) -> FactorGraph:
    """A hub, spokes that are told apart, and large classes that only their spokes join to it."""
    rng = np.random.default_rng(0)
    spokes = [f"spoke({i})" for i in range(num_pairs)]
    rims = [[f"rim({i},{k})" for k in range(3)] for i in range(num_pairs)]
    names = ["hub", *spokes, *itertools.chain(*rims)]
    either = Table.shared([[0.3, 0.1], [0.2, 0.9]])
    return FactorGraph.build(
        dict.fromkeys(names, boolean),
        [
            (Table(rng.normal(size=(num_pairs, 2))), [[name] for name in spokes]),
            (either, [["hub", name] for name in spokes]),
            (either, [[a, b] for a, rim in zip(spokes, rims, strict=True) for b in rim]),
        ],
    )


def test_what_is_drawn_hangs_together_and_has_every_predicate() -> None:
    lifting = lift(hub_and_pairs(30))

    drawn = ClassGraph.of(lifting.graph, 15)

    assert drawn.num_circles == 15
    assert drawn.predicates == ("hub", "spoke", "rim")
    pairs = np.array([pair for pair in drawn.joined if len(pair) == 2])
    links = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(15, 15))
    assert connected_components(links, directed=False)[0] == 1


def test_a_predicate_that_no_factor_leads_to_has_a_place() -> None:
    graph = hub_and_pairs(30)
    names = [*graph.variables.names.render().to_pylist(), "alone(a)"]
    variables = FactorGraph.build(dict.fromkeys(names, boolean), []).variables

    drawn = ClassGraph.of(lift(FactorGraph(variables, graph.groups)).graph, 6)

    assert set(drawn.predicates) == {"hub", "spoke", "rim", "alone"}


def test_no_more_are_drawn_than_asked_for_even_with_more_predicates() -> None:
    graph = FactorGraph.build({f"p{i}(a)": boolean for i in range(20)}, [])
    tables = Table(np.random.default_rng(0).normal(size=(20, 2)))
    group = FactorGroup(tables, np.arange(20)[:, None])

    drawn = ClassGraph.of(lift(FactorGraph(graph.variables, (group,))).graph, 3)

    assert drawn.num_circles == 3


def test_factors_that_join_circles_are_drawn_before_others_and_what_is_left_out_is_said() -> None:
    count = 30
    rng = np.random.default_rng(0)
    names = [f"x({i})" for i in range(count)]
    pairs = [list(pair) for pair in itertools.combinations(names, 2)]
    graph = FactorGraph.build(
        dict.fromkeys(names, boolean),
        [
            (Table(rng.normal(size=(count, 2))), [[name] for name in names]),
            (Table(rng.normal(size=(len(pairs), 2, 2))), pairs),
        ],
    )
    lifting = lift(graph)

    ax = plot_classes(lifting)
    drawn = ClassGraph.of(lifting.graph, 40)

    assert len(drawn.slots) == MAX_SQUARES
    joined = np.array(drawn.joined)
    assert joined.shape == (MAX_SQUARES, 2)
    links = coo_array((np.ones(MAX_SQUARES), tuple(joined.T)), shape=(count, count))
    assert connected_components(links, directed=False)[0] == 1
    left = count + len(pairs) - MAX_SQUARES
    assert ax.get_title(loc="left").endswith(f"\n{left} classes of factors are left out")


def test_many_factors_of_the_same_variables_are_one_square() -> None:
    tables = Table(np.random.default_rng(0).normal(size=(7, 2)))
    graph = FactorGraph.build({"a": boolean}, [(tables, [["a"]] * 7)])

    ax = plot_classes(lift(graph))

    assert texts(ax) == ["a", "7 classes"]


def test_the_same_lifting_gives_the_same_picture() -> None:
    first, second = (plot_classes(lift(toy.instance().graph)) for _ in range(2))

    np.testing.assert_array_equal(circles(first).get_offsets(), circles(second).get_offsets())


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_picture_is_written(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"classes.{ending}"

    plot_classes(lift(toy_hybrid_mln()), path=path)

    assert path.stat().st_size > 1000


def test_a_picture_goes_into_axes_that_are_given() -> None:
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)

    found = plot_classes(lift(toy_hybrid_mln()), ax=right)

    assert found is right
    assert not left.texts
    assert len(right.texts) > 5


REFUSED = {
    "a graph": (lambda lifting: {"lifting": lifting.source}, r"pass hl\.lift\(graph\)"),
    "nothing": (
        lambda _: {"lifting": None},
        r"such as hl\.lift\(graph\), not a value .* 'NoneType'",
    ),
    "no classes": (lambda _: {"max_classes": 0}, "an integer of at least 1, not 0"),
    "half a class": (lambda _: {"max_classes": 1.5}, "an integer of at least 1, not 1.5"),
    "letters": (lambda _: {"max_classes": "a"}, "an integer of at least 1, not 'a'"),
    "an ending": (
        lambda _: {"path": "a.xyz"},
        r"a\.xyz: a figure's name ends in \.png, \.pdf, \.svg",
    ),
}


@pytest.mark.parametrize(("change", "text"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_drawn_is_refused(change: Any, text: str) -> None:
    lifting = lift(toy_hybrid_mln())

    with pytest.raises(UnsupportedError, match=text):
        plot_classes(**{"lifting": lifting, **change(lifting)})


def test_a_picture_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no folder"):
        plot_classes(lift(toy_hybrid_mln()), path=tmp_path / "nowhere" / "classes.png")


def test_nothing_and_one_class_are_pictures_too() -> None:
    alone = FactorGraph.build({"a": boolean}, [])

    nothing = plot_classes(lift(alone.observe({"a": True})))
    one = plot_classes(lift(alone))

    assert texts(nothing) == ["All variables are observed."]
    assert nothing.get_legend() is None
    assert nothing.get_title(loc="left") == "0 variables in 0 classes, 0 factors in 0"
    assert texts(one) == ["a"]
    assert one.get_title(loc="left") == "1 variable in 1 class, 0 factors in 0"


def test_a_model_without_variables_is_said_to_be_one() -> None:
    ax = plot_classes(lift(FactorGraph.build({}, [])))

    assert texts(ax) == ["There are no variables."]


def test_labels_cover_no_circle() -> None:
    people = {f"Friends(p{i},p{j})": i < j for i in range(4) for j in range(4) if i != j}
    ax = plot_classes(lift(friends_and_smokers(30).observe(people)))

    marks = circles(ax)
    centres = ax.transData.transform(marks.get_offsets())
    radius = np.sqrt(marks.get_sizes() / np.pi) * ax.figure.dpi / 72
    for box in boxes(ax):
        low, high = np.array([box.x0, box.y0]), np.array([box.x1, box.y1])
        away = np.maximum(np.maximum(low - centres, centres - high), 0)
        assert (np.hypot(*away.T) > radius - 2).all()


def test_letters_are_smaller_in_small_axes() -> None:
    lifting = lift(toy_hybrid_mln())
    small = Figure(figsize=(7, 4)).subplots(1, 3)[0]

    large = plot_classes(lifting)
    plot_classes(lifting, ax=small)

    assert small.texts[0].get_fontsize() < large.texts[0].get_fontsize()
    assert circles(small).get_sizes()[0] < circles(large).get_sizes()[0]
    assert small.get_title(loc="left").count("\n") > 0


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_labels_of_small_graphs_do_not_cover_each_other(model: ZooModel) -> None:
    ax = plot_classes(lift(model.graph()))

    for one, other in itertools.combinations(boxes(ax), 2):
        assert not one.padded(-1).overlaps(other.padded(-1))


def test_nodes_of_a_layout_are_apart_and_edges_of_one_length() -> None:
    grid = np.arange(20).reshape(4, 5)
    edges = [*zip(grid[:, :-1].ravel(), grid[:, 1:].ravel(), strict=True)]
    edges += [*zip(grid[:-1].ravel(), grid[1:].ravel(), strict=True)]
    lonely = 3

    positions = layout(20 + lonely, np.array(edges))

    apart = np.hypot(*(positions[:, None] - positions[None]).T) + 10 * np.eye(20 + lonely)
    assert apart.min() > 0.5
    lengths = [apart[a, b] for a, b in edges]
    assert 0.5 < min(lengths) < max(lengths) < 1.5


def test_a_chain_is_laid_out_straight() -> None:
    edges = np.stack([np.arange(9), np.arange(1, 10)], axis=1)

    positions = layout(10, edges)

    assert np.ptp(positions[:, 0]) == pytest.approx(9, rel=0.05)
    assert np.ptp(positions[:, 1]) < 0.2
