"""Pictures of marginals."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hylift.errors import EvidenceError, UnsupportedError
from hylift.graph import FactorGraph, Soft, boolean, categorical, interval, real
from hylift.inference import MeanField, infer
from hylift.plot import plot_marginals
from hylift.plot.marginals import curve
from hylift.posterior import BetaMixture, GaussianMixture, Posterior
from hylift.potentials import ConditionalQuadratic, Table
from hylift.words import doubt

UNIT = ConditionalQuadratic.gaussian([0.0], [[1.0]])
KINDS = categorical(["a", "b", "c"])
GRAPH = FactorGraph.build(
    {"on": boolean, "x": real, "seen": real, "z": interval(0, 1), "kind": KINDS, "rough": real},
    [
        (UNIT, [["x"], ["seen"], ["rough"]]),
        (Table.shared(np.log([0.1, 0.7, 0.2])), [["kind"]]),
    ],
).observe({"seen": 0.5, "rough": Soft(2.0, 0.25)})
EXACT = infer(GRAPH)
BOTH = {"exact": EXACT, "product": infer(GRAPH, MeanField())}


def legend(panel: Axes) -> list[str]:
    """What the legend of the figure explains."""
    return [words.get_text() for one in panel.figure.legends for words in one.get_texts()]


def heights(panel: Axes) -> list[float]:
    return [round(bar.get_height(), 6) for bar in panel.patches]


def test_every_kind_of_marginal_has_its_panel(tmp_path: Path) -> None:
    path = tmp_path / "marginals.png"

    panels = plot_marginals(EXACT, ["on", "x", "seen", "z"], path=path)

    assert [panel.get_title() for panel in panels] == ["on", "x", "seen", "z"]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_legend_explains_what_is_drawn() -> None:
    (alone,) = plot_marginals(EXACT, ["x"])
    (measured,) = plot_marginals(EXACT, ["rough"], truth={"rough": 1.8})
    (seen,) = plot_marginals(EXACT, ["seen"])

    assert legend(alone) == ["90 % interval", "mean"]
    assert legend(measured) == ["90 % interval", "mean", "measured ± sd", "truth"]
    assert legend(seen) == ["observed"]


def test_a_mark_of_doubt_is_explained() -> None:
    doubtful = EXACT.with_note(doubt("Something is off."))

    (panel,) = plot_marginals(doubtful, ["on"])

    assert panel.get_title() == "on (?)"
    assert legend(panel) == ["doubtful"]


def test_densities_of_several_posteriors_differ_in_colour_and_dash() -> None:
    (panel,) = plot_marginals(BOTH, ["x"])

    looks = {(line.get_color(), line.get_linestyle()) for line in panel.lines}
    assert looks == {("#0072B2", "-"), ("#E69F00", "--")}
    assert legend(panel) == ["exact", "product"]


def test_bars_of_several_posteriors_stand_beside_each_other() -> None:
    (panel,) = plot_marginals(BOTH, ["kind"])

    assert heights(panel) == [0.1, 0.7, 0.2] * 2
    assert len({round(bar.get_x(), 6) for bar in panel.patches}) == 6
    assert legend(panel) == ["exact", "product"]


def test_the_truth_is_marked_at_its_value_or_state() -> None:
    real_panel, state_panel = plot_marginals(EXACT, ["x", "kind"], truth={"x": 1.5, "kind": "c"})

    assert [line.get_xdata()[0] for line in real_panel.lines if line.get_marker() == "v"] == [1.5]
    assert [line.get_xdata()[0] for line in state_panel.lines if line.get_marker() == "v"] == [2]


def test_a_measurement_has_a_mark_with_its_error() -> None:
    (panel,) = plot_marginals(EXACT, ["rough"])

    (bars,) = panel.containers
    assert bars.lines[0].get_xdata()[0] == 2.0
    ((start, end),) = bars.lines[2][0].get_segments()
    np.testing.assert_allclose([start[0], end[0]], [1.5, 2.5])


def test_a_posterior_from_a_file_knows_of_no_measurements(tmp_path: Path) -> None:
    EXACT.save(tmp_path / "kept.npz")

    (panel,) = plot_marginals(Posterior.load(tmp_path / "kept.npz"), ["rough"])

    assert legend(panel) == ["90 % interval", "mean"]


def test_what_is_true_is_named_as_in_the_model() -> None:
    with pytest.raises(EvidenceError, match="kind cannot be 'd': its states are a, b, c"):
        plot_marginals(EXACT, ["kind"], truth={"kind": "d"})
    with pytest.raises(KeyError, match="Did you mean 'seen'"):
        plot_marginals(EXACT, ["x"], truth={"sen": 1.0})
    with pytest.raises(UnsupportedError, match="truth is a mapping of atoms to values"):
        plot_marginals(EXACT, ["x"], truth=[1.0])  # type: ignore[arg-type]


def test_names_are_written_as_they_are_and_long_ones_without_their_middle() -> None:
    long = "popularity(" + "a very long title, " * 5 + "2024)"
    graph = FactorGraph.build({"x_$1^2$": real, long: real}, [(UNIT, [["x_$1^2$"], [long]])])

    short, shortened = plot_marginals(infer(graph))

    assert short.title.get_text() == "x_$1^2$"
    assert not short.title.get_parse_math()
    assert shortened.get_title().startswith("popularity(")
    assert shortened.get_title().endswith("2024)")
    assert len(shortened.get_title()) < 40


def test_of_many_states_the_probable_and_the_true_one_are_drawn() -> None:
    many = categorical([f"state {number}" for number in range(40)])
    weights = np.arange(1.0, 41.0)
    graph = FactorGraph.build({"which": many}, [(Table.shared(np.log(weights)), [["which"]])])

    (panel,) = plot_marginals(infer(graph), truth={"which": "state 3"})

    names = [words.get_text() for words in panel.get_yticklabels()]
    assert names == ["state 3", *(f"state {n}" for n in range(30, 40)), "29 others"]
    widths = [bar.get_width() for bar in panel.patches]
    assert sum(widths) == pytest.approx(1.0)
    assert [line.get_ydata()[0] for line in panel.lines] == [0]


def test_letters_that_no_font_has_raise_no_warning(tmp_path: Path) -> None:
    graph = FactorGraph.build({"温度": real}, [(UNIT, [["温度"]])])

    plot_marginals(infer(graph), path=tmp_path / "boxes.png")

    assert (tmp_path / "boxes.png").is_file()


def test_given_axes_are_drawn_on() -> None:
    left, right = Figure().subplots(1, 2)

    panels = plot_marginals(BOTH, ["x", "kind"], axes=[left, right])

    assert panels == [left, right]
    assert [words.get_text() for words in left.get_legend().get_texts()] == ["exact", "product"]
    with pytest.raises(UnsupportedError, match="2 marginals need as many axes, not 1"):
        plot_marginals(EXACT, ["x", "kind"], axes=[left])


def test_a_narrow_peak_has_enough_points() -> None:
    spike = GaussianMixture([0.95, 0.05], [0.0, 3.0], [25.0, 1e-6])

    x, y = curve(spike)

    inside = np.linspace(2.997, 3.003, 500)
    error = np.abs(np.interp(inside, x, y) - spike.pdf(inside))
    assert error.max() < 0.01 * y.max()  # of what is seen
    assert len(x) < 2000


def test_an_infinite_density_leaves_room_for_the_rest() -> None:
    steep = BetaMixture([1.0], [5.0], [0.5], 0.0, 1.0)

    _, y = curve(steep)

    assert np.isfinite(y).all()
    assert y.max() < 2 * steep.pdf(steep.quantile(0.95))


def test_too_many_panels_are_refused() -> None:
    graph = FactorGraph.build({f"b{i}": boolean for i in range(30)}, [])

    with pytest.raises(UnsupportedError) as refusal:
        plot_marginals(infer(graph))

    assert str(refusal.value) == (
        "a figure shows 1 to 24 marginals, not 30: name some of the atoms, or draw a forest plot"
    )


def test_what_is_no_posterior_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="plot_marginals draws a posterior, or several"):
        plot_marginals([EXACT], ["x"])  # type: ignore[arg-type]


def test_a_figure_of_another_kind_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"a\.xyz: a figure's name ends in \.png, \.pdf"):
        plot_marginals(EXACT, ["on"], path="a.xyz")
