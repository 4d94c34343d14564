"""Forest plots: many marginals below each other."""

import numpy as np
import pytest

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, boolean, categorical, real
from hylift.grounding import ground
from hylift.inference import MeanField, infer
from hylift.language import parse
from hylift.plot import plot_forest
from hylift.potentials import ConditionalQuadratic, Table
from hylift.words import doubt

UNIT = ConditionalQuadratic.gaussian([0.0], [[1.0]])
HIGH = ConditionalQuadratic.gaussian([5.0], [[4.0]])
GRAPH = FactorGraph.build(
    {"low": real, "high": real, "seen": real, "on": boolean, "kind": categorical(["a", "b", "c"])},
    [
        (UNIT, [["low"], ["seen"]]),
        (HIGH, [["high"]]),
        (Table.shared(np.log([0.2, 0.8])), [["on"]]),
        (Table.shared(np.log([0.1, 0.7, 0.2])), [["kind"]]),
    ],
).observe({"seen": 2.5})


def drawn_at(ax) -> list[str]:
    return [words.get_text() for words in ax.get_yticklabels()]


def test_reals_have_a_median_and_two_intervals(tmp_path):
    path = tmp_path / "forest.png"

    ax = plot_forest(infer(GRAPH), ["low", "high"], path=path)

    assert path.read_bytes().startswith(b"\x89PNG")
    assert drawn_at(ax) == ["low", "high"]
    wide, thick, middle = ([line.get_xdata() for line in ax.lines[i::3]] for i in range(3))
    np.testing.assert_allclose(wide[0], [-1.6449, 1.6449], atol=1e-4)
    np.testing.assert_allclose(thick[0], [-0.6745, 0.6745], atol=1e-4)
    np.testing.assert_allclose([float(x[0]) for x in middle], [0.0, 5.0], atol=1e-9)


def test_the_largest_is_on_top_where_asked_for():
    assert drawn_at(plot_forest(infer(GRAPH), ["low", "high"], sort=True)) == ["high", "low"]


def test_an_observed_real_is_a_cross():
    (line,) = plot_forest(infer(GRAPH), ["seen"]).lines

    assert line.get_marker() == "x"
    assert float(line.get_xdata()[0]) == 2.5


def test_discrete_variables_have_probabilities_with_the_state_named():
    ax = plot_forest(infer(GRAPH), ["on", "kind"])

    ends = [float(line.get_xdata()[-1]) for line in ax.lines[1::2]]
    np.testing.assert_allclose(ends, [0.8, 0.7])
    assert [words.get_text() for words in ax.texts] == ["", "b"]
    assert ax.get_xlabel() == "probability"


def test_several_posteriors_stand_beside_each_other_with_a_legend():
    ax = plot_forest({"exact": infer(GRAPH), "product": infer(GRAPH, MeanField())}, ["low"])

    heights = {float(line.get_ydata()[0]) for line in ax.lines}
    assert len(heights) == 2
    assert explained(ax) == ["exact", "product"]


def test_a_legend_names_posteriors_before_marks():
    both = {"exact": infer(GRAPH), "product": infer(GRAPH, MeanField())}

    ax = plot_forest(both, ["low", "seen"], truth={"low": 1.0})

    assert explained(ax) == ["exact", "product", "observed", "truth"]


def test_a_mark_of_doubt_is_explained():
    doubtful = infer(GRAPH).with_note(doubt("Something is off."))

    ax = plot_forest(doubtful, ["low", "seen"])

    assert drawn_at(ax) == ["low (?)", "seen"]
    assert explained(ax) == ["observed", "doubtful"]


def test_bands_tell_which_of_several_atoms_a_triangle_belongs_to():
    both = {"exact": infer(GRAPH), "product": infer(GRAPH, MeanField())}

    ax = plot_forest(both, ["low", "high"], truth={"high": 2.0})

    (band,) = ax.patches
    (height,) = [float(line.get_ydata()[0]) for line in ax.lines if line.get_marker() == "v"]
    assert band.get_y() < height < band.get_y() + band.get_height()
    assert band.get_y() + band.get_height() / 2 == 1  # that of 'high', the second one


def test_reals_and_discrete_variables_do_not_share_an_axis():
    with pytest.raises(UnsupportedError, match="'on' is discrete and 'low' is a real"):
        plot_forest(infer(GRAPH), ["low", "on"])


def test_too_many_atoms_are_refused():
    graph = FactorGraph.build({f"b{i}": boolean for i in range(101)}, [])

    with pytest.raises(UnsupportedError, match="a forest plot shows 1 to 100 atoms, not 101"):
        plot_forest(infer(graph))


def test_what_is_no_posterior_is_refused():
    with pytest.raises(UnsupportedError, match=r"plot_forest draws a posterior, or several"):
        plot_forest([infer(GRAPH)], ["low"])


def test_an_observed_state_is_a_cross_too():
    ax = plot_forest(infer(GRAPH.observe({"on": True})), ["on", "kind"])

    assert [line.get_marker() for line in ax.lines if line.get_marker() != "None"] == ["x", "o"]
    assert explained(ax) == ["observed"]


def test_the_truth_is_a_triangle_or_a_word():
    truth = {"low": -0.5, "on": True, "kind": "c"}

    reals = plot_forest(infer(GRAPH), ["low", "high"], truth=truth)
    states = plot_forest(infer(GRAPH), ["on", "kind"], truth=truth)

    assert triangles(reals) == [-0.5]
    assert triangles(states) == [1.0]
    assert [words.get_text() for words in states.texts] == ["", "b (truth: c)"]
    assert explained(reals) == ["truth"]


def test_the_truth_may_be_written_with_spaces():
    model = parse("level(shop, day): real\nnormal(level(s, d) | 0, 1)")
    graph = ground(model, {"shop": ["North End"], "day": ["1"]})

    drawn = plot_forest(infer(graph), ["level(North End, 1)"], truth={"level( North End,1 )": 0.5})

    assert triangles(drawn) == [0.5]


def test_letters_that_no_font_has_raise_no_warning(tmp_path):
    graph = FactorGraph.build({"温度": real}, [(UNIT, [["温度"]])])

    plot_forest({"厳密": infer(graph), "other": infer(graph)}, path=tmp_path / "boxes.png")

    assert (tmp_path / "boxes.png").is_file()


def triangles(ax) -> list[float]:
    return [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "v"]


def explained(ax) -> list[str]:
    """What the legend of the figure says."""
    return [words.get_text() for one in ax.figure.legends for words in one.get_texts()]
